"""The completion scripts, bash's in a bash, and the man page."""
import os
import re
import shutil
import subprocess

import command
from command import MINFER, SCRATCH, environment, good, refused, scratch, tiny

CACHE = os.path.join(SCRATCH, "cache")
COMMANDS = re.findall(r"^\| `(\w+)` \|", good("--help-markdown").out.decode().split("###")[0], re.M)


def complete(*words):
    """What bash offers for the last word."""
    script = scratch("complete.bash", good("completion", "bash").out)
    program = f"""
        PATH="{os.path.dirname(MINFER)}:$PATH"
        source {script}
        complete -p minfer >/dev/null || exit 9
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _minfer
        printf '%s\n' "${{COMPREPLY[@]}}"
    """
    p = subprocess.run(["bash", "-c", program, "bash", "minfer", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SCRATCH,
                       env=environment({"XDG_CACHE_HOME": CACHE}), timeout=60)
    assert p.returncode == 0 and not p.stderr, p.stderr
    return p.stdout.decode().split()


def bash():
    if not shutil.which("bash"):
        command.skip("no bash")
        return
    folder = os.path.join(CACHE, "minfer", "models")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(tiny("qwen2-mix"), os.path.join(folder, "Tiny-Q4.gguf"))
    assert complete("ben") == ["bench"]
    assert {"run", "Tiny-Q4", "cache"} <= set(complete(""))
    assert complete("run", "T") == ["Tiny-Q4"] and complete("T") == ["Tiny-Q4"] and complete("rm", "T") == ["Tiny-Q4"]
    assert {"--temp", "--temperature"} <= set(complete("Tiny-Q4", "--temp")) and "--top-k" not in complete("Tiny-Q4", "--temp")
    assert "--temp" not in complete("bench", "-") and "--repetitions" in complete("bench", "--re")
    assert complete("bench", "x", "-o", "") == ["md", "csv", "json"] and complete("bench", "x", "--output", "c") == ["csv"]
    assert complete("x", "--cache-type", "q8") == ["q8_0"]
    assert "complete.bash" in complete("x", "-f", "") and complete("x", "--seed", "") == []
    assert complete("completion", "z") == ["zsh"] and complete("help", "ben") == ["bench"]
    for name in COMMANDS:
        assert "--help" in complete(name, "--hel"), name


def other_shells():
    zsh, fish = good("completion", "zsh").out.decode(), good("completion", "fish").out.decode()
    assert zsh.startswith("#compdef minfer\n")
    for name in COMMANDS:
        assert re.search(rf"^    {name}\) flags=\($", zsh, re.M) and f"__minfer_command_is {name}'" in fish, name
    for text in (zsh, fish):
        assert "help-markdown" not in text and "top-k" in text
    refused(2, "no shell", "completion")
    refused(2, "no completion for the shell 'tcsh'", "completion", "tcsh")


def man_page():
    page = good("--help-man").out
    text = page.decode("ascii")
    assert text.startswith(".TH MINFER 1 ") and all(f"\\fB{name}\\fR" in text for name in COMMANDS)
    assert "\\fB\\-\\-top\\-k\\fR" in text and "[MINFER_TOP_K]" in text and "(default: 0.95)" in text
    path = scratch("minfer.1", page)
    linters = [x for x in (["mandoc", "-T", "lint", "-W", "warning"], ["groff", "-man", "-Tascii", "-ww", "-z"]) if shutil.which(x[0])]
    if not linters:
        command.skip("no mandoc and no groff to check the man page with")
    for linter in linters:
        p = subprocess.run([*linter, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert p.returncode == 0 and not p.stdout, p.stdout.decode()


command.main([bash, other_shells, man_page])
