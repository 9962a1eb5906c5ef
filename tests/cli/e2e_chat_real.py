"""A long conversation with a real model."""
import command
from e2e_chat import evaluated, own, talk


def real_conversation():
    """30 turns across a full context: a turn evaluates its own tokens, before the first shift and behind it."""
    path = command.test_model()
    if not path:
        return
    with open(command.MINFER, "rb") as f:
        if b"__asan_init" in f.read():
            command.skip("30 turns take too long with the sanitizers' checks")
            return
    questions = [f"Tell me fact number {k} about the sea." for k in range(30)]
    r = talk([x for q in questions for x in (q, "/stats")], "--ctx", "512", "-n", "24", "--greedy", "--verbose", base=["chat", path])
    costs = evaluated(r)
    assert len(costs) == 30 and "left it" in r.err and "read again" not in r.err, r.err
    assert "cached ones dropped: " not in r.err, r.err
    for question, cost in list(zip(questions, costs))[1:]:
        assert own(question, path) - cost in (0, 1), (question, cost)  # one less where the model ended its answer itself


command.main([real_conversation])
