"""zsh on a terminal: nothing that a model's file or name says is evaluated when it is completed."""
import os

import command
import shell
from command import good

shell.need("zsh")


def hostile_names():
    home = shell.fill()
    os.mkdir(os.path.join(home, "functions"))
    with open(os.path.join(home, "functions", "_minfer"), "wb") as f:
        f.write(good("completion", "zsh").out)
    s = shell.Shell(["zsh", "-f", "-i"], home)
    s.run(b"fpath=(~/functions $fpath); autoload -Uz compinit; compinit -D -u; LISTMAX=9999; unsetopt zle_bracketed_paste 2>/dev/null")
    s.type(b"minfer info inno\t")
    s.wait_for(b"innocent")
    s.type(b"\x03")
    shell.complete_and_run(s, home)
    s.close()


command.main([hostile_names])
