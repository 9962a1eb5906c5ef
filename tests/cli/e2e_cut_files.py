"""A model's file that is cut or written to while a conversation over it goes on."""
import os
import shutil
import subprocess
import time

import command

TIED, UNTIED = command.tiny("llama-mix"), command.tiny("qwen2-mix")


def copy_of(model, name):
    path = os.path.join(command.SCRATCH, name)
    shutil.copyfile(model, path)
    return path


class Chat:
    """A conversation whose questions come one by one over a pipe."""

    def __init__(self, model, *flags):
        self.p = subprocess.Popen([command.MINFER, "chat", model, "--greedy", "-n", "5", "--ctx", "512", *flags], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command.environment())
        os.set_blocking(self.p.stdout.fileno(), False)
        self.out = b""

    def ask(self, question):
        """The answer: what comes until nothing has come for a while."""
        self.p.stdin.write(question + b"\n")
        self.p.stdin.flush()
        start, quiet = len(self.out), 0
        while quiet < 20 and self.p.poll() is None:
            piece = self.p.stdout.read()
            if piece:
                self.out += piece
                quiet = 0
            elif len(self.out) > start:
                quiet += 1
            time.sleep(0.02)
        return self.out[start:]

    def end(self):
        os.set_blocking(self.p.stdout.fileno(), True)
        out, err = self.p.communicate(timeout=60)
        return self.p.returncode, self.out + out, err.decode()


def what_is_in_memory_stays():
    """Weights that were repacked, the vocabulary and the template are the process's own."""
    answers = []
    for cut in (False, True):
        path = copy_of(TIED, "tied.gguf")
        chat = Chat(path)
        first = chat.ask(b"hello")
        assert first
        if cut:
            os.truncate(path, 0)
        answers.append((first, chat.ask(b"and then?")))
        code, _, err = chat.end()
        assert code == 0, (code, err)
    assert answers[0] == answers[1], answers


def what_is_read_from_the_file_is_refused():
    """Weights that are read where they are mapped: an error with the file's name, for the question that would need them."""
    for change in (lambda path: os.truncate(path, 100), lambda path: os.utime(path, ns=(1, 1))):
        path = copy_of(UNTIED, "untied.gguf")
        chat = Chat(path, "--cpu", "scalar")
        assert chat.ask(b"hello")
        change(path)
        chat.ask(b"and then?")
        code, _, err = chat.end()
        assert code == 1, (code, err)
        assert f"'{path}' has changed while it was in use" in err, err


def a_file_in_its_place_is_another():
    """Replacing a file, as downloads do, leaves the one in use as it is."""
    path = copy_of(UNTIED, "replaced.gguf")
    chat = Chat(path, "--cpu", "scalar")
    assert chat.ask(b"hello")
    os.replace(command.scratch("other", b"not a model"), path)
    assert chat.ask(b"and then?")
    code, _, err = chat.end()
    assert code == 0, (code, err)


command.main([what_is_in_memory_stays, what_is_read_from_the_file_is_refused, a_file_in_its_place_is_another])
