"""fish: nothing that a model's file or name says is evaluated when it is completed."""
import os
import subprocess

import command
import shell
from command import environment, good, scratch

shell.need("fish")


def hostile_names():
    home = shell.fill()
    script = scratch("minfer.fish", good("completion", "fish").out)
    env = environment({"XDG_CACHE_HOME": os.path.join(home, "cache"), "HOME": home, "PATH": os.path.dirname(command.MINFER) + ":" + os.environ["PATH"]})
    offered = {}
    for words in ("info ", "rm ", "run ", "info inno", "run -f file-", *("info " + name[:3] for name in shell.NAMES)):
        p = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C $argv[1]", "minfer " + words], stdin=subprocess.DEVNULL, cwd=home, env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        offered[words] = p.stdout
        assert not os.path.exists(os.path.join(home, "HARM")), (words, p.stdout, p.stderr)
    assert b"innocent" in offered["info inno"] and b"HARM" not in offered["rm "], offered


command.main([hostile_names])
