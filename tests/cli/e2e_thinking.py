"""What a model thinks, apart from what it answers: by family, opened by the template or by the model, hidden, dimmed, cut."""
import json

import command
from command import good
from scripted import CHATML, CONTROL, USER_DEFINED, make

DIM, PLAIN = b"\033[2m", b"\033[0m"
OPENED = CHATML.replace("assistant\n{{ '' }}", "assistant\n{{ 'MARK' }}")


def thoughts(model, *args):
    """Plain, hidden, dimmed, and the JSON object with the thought apart."""
    flags = ["hi", "--greedy", *args]
    r = good(model, *flags, "--hide-thinking", "--json")
    hidden = good(model, *flags, "--hide-thinking")
    assert b"\033" not in hidden.out
    return good(model, *flags).out, hidden.out, good(model, *flags, "--color", "always").out, json.loads(r.out), hidden.err


FAMILIES = [("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"), ("<thought>", "</thought>"),
            ("<|inner_prefix|>", "<|inner_suffix|>"), ("<|START_THINKING|>", "<|END_THINKING|>")]


def families():
    """The template's text says which marks they are; they may be any type of token, and in pieces."""
    for opening, closing in FAMILIES:
        for kind in (CONTROL, USER_DEFINED, None):
            marks = [(kind, opening), (kind, closing)] if kind else [opening, closing]
            model = make("family", [marks[0], "\nhm", "m\n", marks[1], "\n\n", "Yes", " sir"], CHATML + "{# " + closing + " #}")
            plain, hidden, dimmed, apart, _ = thoughts(model)
            thought = f"{opening}\nhmm\n{closing}".encode()
            assert plain == thought + b"\n\nYes sir\n", plain
            assert hidden == b"Yes sir\n" and dimmed == DIM + thought + PLAIN + b"\n\nYes sir\n", (hidden, dimmed)
            assert apart["text"] == "Yes sir" and apart["reasoning"] == "hmm" and "reasoning_cut" not in apart, apart
    model = make("pieces", ["\n ", "<th", "ink>a", "</", "thin", "k> ", "b"])
    assert thoughts(model)[1:3] == (b"b\n", DIM + b"\n <think>a</think>" + PLAIN + b" b\n")


def other_marks_are_text():
    model = make("other", ["[THINK]", "a", "[/THINK]", " b"], CHATML + "{# <think> #}")
    plain, hidden, dimmed, apart, _ = thoughts(model)
    assert plain == hidden == dimmed == b"[THINK]a[/THINK] b\n" and apart["text"] == plain.decode().strip() and "reasoning" not in apart


def opened_by_the_template():
    for opening, closing in FAMILIES:
        for behind in ("", "\\n", "\\n\\n"):
            model = make("opened", ["so", " \n", (CONTROL, closing), "\n\n", "Yes ", opening, " no", closing[:3]], OPENED.replace("MARK", opening + behind))
            plain, hidden, dimmed, apart, _ = thoughts(model)
            answer = f"Yes {opening} no{closing[:3]}"
            assert plain == f"so \n{closing}\n\n{answer}\n".encode(), plain
            assert hidden == answer.encode() + b"\n" and dimmed == DIM + f"so \n{closing}".encode() + PLAIN + f"\n\n{answer}\n".encode(), (hidden, dimmed)
            assert apart["text"] == answer and apart["reasoning"] == "so", apart
    # A thought that the template has closed again is not open.
    model = make("closed", ["Yes", "</think>", " no"], OPENED.replace("MARK", "<think>\\n\\n</think>\\n\\n"))
    assert thoughts(model)[1] == b"Yes</think> no\n"


def later_marks_are_text():
    for script in (["Use", " <think>", "x", "</think>", " tags"], ["<think>", "a", "</think>", "b", "<thi", "nk>c", "</thi", "nk>"]):
        model = make("later", script)
        plain, hidden, _, apart, err = thoughts(model)
        want = plain if script[0] == "Use" else b"b<think>c</think>\n"
        assert hidden == want and apart["text"].encode() + b"\n" == want and "thinking" not in err, (script, hidden)


def cut():
    model = make("cut", ["<think>", "a", " b", " c", "</think>", "d"])
    for n, answered in (("1", False), ("3", False), ("5", True), ("6", True)):
        plain, hidden, dimmed, apart, err = thoughts(model, "-n", n)
        assert dimmed.count(DIM) == dimmed.count(PLAIN) == 1
        assert ("the thought is cut" in err) == ("reasoning_cut" in apart) == (not answered), (n, err, apart)
    model = make("ended", ["<think>", "a"])  # the model ends its answer in the thought
    plain, hidden, dimmed, apart, err = thoughts(model)
    assert "the thought is cut" in err and apart["reasoning_cut"] is True and apart["text"] == "" and apart["reasoning"] == "a", apart
    r = good("chat", model, "--hide-thinking", stdin=b"hi\n")
    assert "the thought is cut" in r.err and r.out == b"\n", r.err


def raw_prompts():
    """A prompt that is taken as it is may open the thought too."""
    model = make("raw", ["a", "</think>", "b"])
    assert good(model, "--raw", "-p", "x<think>\n", "--hide-thinking").out == b"b\n"
    assert good(model, "--raw", "-p", "x", "--hide-thinking").out == b"a</think>b\n"


if __name__ == "__main__":
    command.main([families, other_marks_are_text, opened_by_the_template, later_marks_are_text, cut, raw_prompts])
