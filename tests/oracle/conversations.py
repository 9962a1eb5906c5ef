"""Conversations for chat templates: a name and the variables of a rendering. Standard library only."""


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(number, name, arguments):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city; \"now\" by default.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city's name"},
                "unit": {"type": "string", "enum": ["°C", "°F"], "default": "°C"},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["city"],
        },
    },
}
SEARCH = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Looks <b>something</b> up",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": "number", "default": 1.5},
                "exact": {"type": ["boolean", "null"]},
                "filter": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "string"}]}}},
            },
            "required": ["query", "limit"],
        },
    },
}
TOOLS = [WEATHER, SEARCH]
BASE = {"add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None}


def conversations():
    hello = say("user", "Hello, who are you?")
    out = {
        "user": {"messages": [hello]},
        "system": {"messages": [say("system", "You are terse."), hello]},
        "turns": {
            "messages": [say("system", "  Be kind.\n"), hello, say("assistant", " A model. "), say("user", "Good."),
                         say("assistant", "Yes?"), say("user", "Bye.\n\n")]
        },
        "unicode": {
            "messages": [say("system", "Österreich ß ŉ İ ǅ"), say("user", "naïve 日本語 👩‍👩‍👧 e\u0301 \u2028 \"quoted\" 'q' <b>&amp;"),
                         say("assistant", "Ça va — ﬁn Σίσυφος"), say("user", "\u00a0 espaces \u3000")]
        },
        "no_prompt": {"messages": [hello, say("assistant", "I am."), say("user", "So?"), say("assistant", "Done.")],
                      "add_generation_prompt": False},
        "empty": {"messages": [say("system", ""), say("user", ""), say("assistant", ""), say("user", "x")]},
        "nothing": {"messages": []},
        "tools": {"messages": [say("system", "Use tools."), say("user", "Weather in Paris?")], "tools": TOOLS},
        "tool_call": {
            "messages": [say("user", "Weather in Paris?"),
                         say("assistant", "", tool_calls=[call(1, "get_weather", {"city": "Paris", "days": [1, 2], "x": None})]),
                         say("tool", "{\"temp\": 21.5}", name="get_weather", tool_call_id="call00001"),
                         say("assistant", "It is 21.5 °C."), say("user", "Thanks")],
            "tools": TOOLS,
        },
        "parallel": {
            "messages": [say("system", "Be quick."), say("user", "Paris and Rome?"),
                         say("assistant", "Let me look.", tool_calls=[
                             call(1, "get_weather", {"city": "Paris", "unit": "°C"}),
                             call(2, "get_weather", {"city": "Rome", "deep": {"b": True, "a": [1.0, "é", 10 ** 20]}})]),
                         say("tool", "sunny", name="get_weather", tool_call_id="call00001"),
                         say("tool", "rain <|im_end|>", name="get_weather", tool_call_id="call00002")],
            "tools": TOOLS,
        },
        "text_arguments": {
            "messages": [say("user", "Look it up"),
                         say("assistant", None, tool_calls=[call(1, "search", "{\"query\": \"x\", \"limit\": 3}")]),
                         say("tool", "found", name="search", tool_call_id="call00001"), say("user", "And?")],
            "tools": TOOLS,
        },
        "reasoning": {
            "messages": [say("user", "2+2?"), say("assistant", "4", reasoning_content="Two and two.\n", thinking="Two and two."),
                         say("user", "3+3?"), say("assistant", "<think>\nthree and three\n</think>\n\n6"), say("user", "Sure?")]
        },
        "thinking_off": {"messages": [say("user", "2+2?")], "enable_thinking": False, "thinking": False},
        "thinking_on": {"messages": [say("system", "Think."), say("user", "2+2?")], "enable_thinking": True, "thinking": True,
                        "reasoning_effort": "high"},
        "parts": {
            "messages": [say("system", [{"type": "text", "text": "Be brief."}]),
                         say("user", [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]),
                         say("assistant", [{"type": "text", "text": "A thing."}]), say("user", "Which?")]
        },
        "image": {"messages": [say("user", [{"type": "image"}, {"type": "text", "text": "What is this?"}])]},
        "developer": {"messages": [say("developer", "Answer in French."), hello]},
        "late_system": {"messages": [hello, say("assistant", "Hi."), say("system", "Be formal."), say("user", "Again")]},
        "two_users": {"messages": [say("user", "One"), say("user", "Two")]},
        "role_unknown": {"messages": [say("user", "One"), say("narrator", "He said."), say("user", "Two")]},
        "documents": {"messages": [hello], "documents": [{"title": "T1", "text": "Some <text>."}, {"title": "T2", "text": "é"}]},
        "long": {
            "messages": [say("system", "S " * 500)] + [say(("user", "assistant")[i % 2], f"turn {i}: " + "word\n " * (i % 50))
                                                       for i in range(101)]
        },
    }
    return {name: {**BASE, **variables} for name, variables in out.items()}
