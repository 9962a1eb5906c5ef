"""bash on a terminal: nothing that a model's file or name says is evaluated when it is completed."""
import command
import shell
from command import good

shell.need("bash")


def hostile_names():
    home = shell.fill()
    s = shell.Shell(["bash", "--norc", "--noprofile", "-i"], home)
    s.run(b"bind 'set enable-bracketed-paste off'; bind 'set page-completions off'; bind 'set completion-query-items 0'")
    s.run(b"source <(minfer completion bash)")
    s.type(b"minfer info inno\t")
    s.wait_for(b"innocent")
    s.type(b"\x03")
    shell.complete_and_run(s, home)
    s.close()


command.main([hostile_names])
