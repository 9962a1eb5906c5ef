#!/usr/bin/env python3
"""Writes tests/fixtures/jinja/cases.json: our own templates, one a construct, and what jinja2 makes of them. jinja.py FILE

The differences that jinja_fuzz.py found are cases too (fuzz_cases.txt beside this file, one JSON template a line).
"""
import importlib.metadata
import json
import pathlib
import sys

import jinja2
import jinja_lines

MESSAGES = [
    {"role": "system", "content": "  Be <b>kind</b>.\n"},
    {"role": "user", "content": "naïve ß ǅ 日本 'q' \"d\""},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": {"b": [1, 2.5, None, True], "a": "é"}}]},
    {"role": "user", "content": "x\ty\r\nz"},
]
VARIABLES = {
    "messages": MESSAGES, "n": 7, "f": 2.5, "s": "Hello, World", "e": "", "l": [3, 1, 2], "d": {"b": 1, "a": [1, {"c": None}]},
    "big": 2 ** 70, "t": True, "nothing": None, "u": "Straße ΑΣ ŉ ﬁ İ", "names": ["bob", "Alice", "carol", "Bob"],
    "people": [{"name": "bob", "age": 3, "city": {"zip": "b"}}, {"name": "Al", "age": 1, "city": {"zip": "a"}},
               {"name": "cy", "age": 3}],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
}

TEMPLATES = r"""
{{ s }}|{{ n }}|{{ f }}|{{ t }}|{{ nothing }}|{{ l }}|{{ d }}|{{ big }}|{{ missing }}
{{ missing is defined }}{{ missing.x }}
{{ missing + 1 }}
{{ missing or 'other' }}{{ missing|default('d') }}{{ e|default('d', true) }}{{ e or 'x' }}{{ n and s }}
{% if missing %}a{% elif n > 5 %}b{% else %}c{% endif %}{% if not t %}d{% endif %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }},{% endfor %}
{% for x in [] %}a{% else %}empty{% endfor %}{% for x in l %}{% continue %}{% else %}all left{% endfor %}
{% for x in l if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}{% for a, b in d.items() %}{{ a }}={{ b }};{% endfor %}
{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}|{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{{ loop.previtem }}{{ loop.nextitem }} {% endfor %}
{% for x in tree recursive %}[{{ x.v }}d{{ loop.depth }}{{ loop.depth0 }}{{ loop(x.c) }}]{% endfor %}
{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=1, y='a') %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}{{ ns }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d2) = [3, 4] %}{{ c }}{{ d2 }}
{% set x %}block {{ n }}{% endset %}{{ x|upper }}{% set y | trim | upper %}  q {% endset %}[{{ y }}]
{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m(1, 2, 3, 4, z=5) }}|{{ m() }}
{% macro m(a) %}{{ a }}{{ caller() }}{{ caller is defined }}{% endmacro %}{% call m(1) %}body {{ n }}{% endcall %}
{% macro m(l) %}{% for x in l %}{{ caller(x, y=x * 2) }};{% endfor %}{% endmacro %}{% call(a, y) m(l) %}{{ a }}/{{ y }}{% endcall %}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ x }}{{ a }}{% endmacro %}{% set x = 5 %}{{ m(1) }}{{ m.name }}{{ m.arguments }}{{ m }}
{% macro outer() %}{% macro inner(q) %}<{{ q }}>{% endmacro %}{{ inner(n) }}{% endmacro %}{{ outer() }}
{% macro fact(k) %}{% if k < 2 %}1{% else %}{{ k * fact(k - 1)|int }}{% endif %}{% endmacro %}{{ fact(20) }} {{ fact(25) }}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}
{% generation %}text {{ n }}{% endgeneration %}|{% print n, s %}
{% raw %}{{ n }}{% x %}{% endraw %}|{%- raw -%}  y  {%- endraw -%}  |{# comment #}{#- c -#}  z
a  {%- if t %}  b  {% endif -%}  c {{- n -}}  d   {%+ if t %} e{% endif +%}
x
    {% if t %}
  y
    {% endif %}
  {{ n }}  {% set q = 1 %}  z
{{ 'it''s' }}{{ "a" 'b' "c" }}{{ 'q\n\t\\\'\x41\u00e9\101\q' }}
{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5e3 }} {{ 1e22 }} {{ 1e16 }} {{ 1e15 }} {{ .5 if false else 0.0001 }} {{ 0.00001 }} {{ 123456789.123456789 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 3 }} {{ 2 ** 0.5 }}
{{ 2 ** 100 }} {{ 2 ** 100 // 3 ** 20 }} {{ -(2 ** 100) % 1000007 }} {{ 10 ** 30 * 10 ** 30 }} {{ 9223372036854775807 + 1 }} {{ -9223372036854775808 }} {{ 2 ** 64 - 2 ** 64 + 1 }} {{ 10 ** 25 / 10 ** 20 }} {{ (10 ** 40) > 1e39 }} {{ big * big }} {{ big == big + 0 }}
{{ 1 / 0 }}
{{ 1 == 1.0 }} {{ 1 < 2 < 3 }} {{ 1 < 2 > 5 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ (1, 2) == (1, 2) }} {{ t == 1 }} {{ none == none }} {{ 'a' in s }} {{ 'W' in s }} {{ 3 not in l }} {{ 'b' in d }} {{ none in [none] }}
{{ 1 < 'a' }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ 2.0 ~ [1] }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ (1,) + (2,) }} {{ () }} {{ (1,) }} {{ {} }} {{ {'a': 1, 2: 'b', none: (1, 2)} }}
{{ l[0] }}{{ l[-1] }}{{ l[9] }}{{ l.0 }}{{ l[1:] }}{{ l[::-1] }}{{ l[:2] }}{{ l[-2:] }}{{ l[5:] }}{{ l[::2] }}{{ s[1] }}{{ s[-3:] }}{{ s[::-2] }}{{ s[8:2:-1] }}{{ u[::-1] }}{{ d['b'] }}{{ d.a }}{{ d['a'][1].c }}{{ d.get('q') }}{{ d.get('q', 3) }}{{ d.q }}{{ (1, 2)[1] }}
{{ d.keys() }}{{ d.values() }}{{ d.items() }}{{ d.keys()|list }}{{ d|list }}{{ d|length }}{{ s|length }}{{ l|length }}{{ d|items|list }}
{{ 'yes' if t else 'no' }}{{ 'yes' if not t }}{{ 1 if e else 2 if n else 3 }}
{{ s.upper() }}{{ s.lower() }}{{ s.title() }}{{ s.capitalize() }}{{ s.swapcase() }}{{ u.upper() }}{{ u.lower() }}{{ u.title() }}{{ u.capitalize() }}{{ u.casefold() }}{{ u|title }}{{ "they're bill's"|title }}{{ "they're bill's".title() }}
{{ '  a b '.strip() }}|{{ '  a '.lstrip() }}|{{ ' a  '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcab'.rstrip('ab') }}|{{ '\u00a0\u3000a\u2028'.strip() }}|{{ '  a '|trim }}|{{ 'xax'|trim('x') }}
{{ 'a,b,,c'.split(',') }}{{ ' a  b '.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a b  c d'.split(none, 2) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ ' a b c '.rsplit(maxsplit=1) }}{{ 'a\nb\r\nc\x0bd\u2028e'.splitlines() }}{{ 'a\nb\n'.splitlines(true) }}{{ ''.split(',') }}{{ ''.split() }}{{ ''.splitlines() }}
{{ s.replace('l', 'L') }}{{ s.replace('l', 'L', 1) }}{{ 'ab'.replace('', '-') }}{{ s|replace('o', '0') }}{{ s.find('o') }}{{ s.rfind('o') }}{{ s.find('zz') }}{{ s.index('W') }}{{ s.count('l') }}{{ s.startswith('He') }}{{ s.endswith(('x', 'ld')) }}{{ s.startswith('l', 2) }}{{ u.find('Σ') }}
{{ 'a-b-c'.partition('-') }}{{ 'a-b-c'.rpartition('-') }}{{ 'ab'.partition('x') }}{{ 'prefix'.removeprefix('pre') }}{{ 'suffix'.removesuffix('fix') }}{{ 'a'.center(5, '*') }}{{ 'ab'.center(5) }}|{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '0') }}{{ '-5'.zfill(4) }}{{ 'a\tb'.expandtabs(4) }}{{ ','.join(names) }}
{{ 'abc'.isalpha() }}{{ '12'.isdigit() }}{{ '²'.isdigit() }}{{ '²'.isdecimal() }}{{ '½'.isnumeric() }}{{ 'a1'.isalnum() }}{{ ' '.isspace() }}{{ 'AB'.isupper() }}{{ 'aB'.islower() }}{{ 'A Title'.istitle() }}{{ ''.isalpha() }}{{ 'é'.isascii() }}
{{ s.index('zz') }}
{{ '%s and %d and %5.2f|%-5s|%05d|%x|%%|%r|%c' % ('a', 3, 2.5, 'b', -42, 255, 'q', 'z') }}{{ '%(a)s' % {'a': 1} }}{{ '%s' % n }}{{ '%s' % (l,) }}{{ '%+d %e %g %o' % (5, 12345.678, 0.0001, 8) }}{{ '%.3s' % 'abcdef' }}
{{ '%d' % 'a' }}
{{ '%s %s' % ('a',) }}
{{ '{} {1}'.format(1, 2) }}
{{ '{} {} {x}'.format(1, 'b', x=none) }}{{ '{0}{1}{0}'.format('a', 'b') }}{{ '{:>5}|{:<5}|{:^5}|{:05d}|{:,}|{:.2f}|{:x}|{:+d}|{!r}|{:*^7}'.format('a', 'b', 'c', 42, 1234567, 3.14159, 255, 5, 'q', 'mid') }}{{ '{0[a]}{0.b}'.format({'a': 1, 'b': 2}) }}{{ '{{}}' .format() }}{{ '{:{w}}'.format(1, w=4) }}{{ '{:.3}'.format(2.0) }}{{ '{:%}'.format(0.25) }}{{ '{:e}'.format(1234.5) }}
{{ d|tojson }}{{ messages|tojson }}{{ d|tojson(indent=2) }}{{ u|tojson }}{{ u|tojson(ensure_ascii=true) }}{{ d|tojson(sort_keys=true) }}{{ d|tojson(separators=(',', ':')) }}{{ [1.0, 1e100, big, true, none, '\x01\x7f<>&\''] |tojson }}{{ {}|tojson(indent=4) }}{{ [[], [1]]|tojson(indent='\t') }}{{ {1: 2, 2.5: 3, true: 4, none: 5}|tojson }}
{{ missing|tojson }}
{{ names|sort }}{{ names|sort(reverse=true) }}{{ names|sort(case_sensitive=true) }}{{ people|sort(attribute='age')|map(attribute='name')|join(',') }}{{ people|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }}{{ d|dictsort }}{{ {'b': 1, 'A': 2}|dictsort(true) }}{{ {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) }}
{{ [1, 'a']|sort }}
{{ names|map('upper')|list }}{{ people|map(attribute='city.zip', default='none')|list }}{{ people|selectattr('age', 'equalto', 3)|map(attribute='name')|list }}{{ people|rejectattr('city')|map(attribute='name')|list }}{{ [0, 1, '', 'a']|select|list }}{{ [1, 2, 3]|reject('odd')|list }}{{ l|select('>', 1)|list }}{{ names|unique|list }}{{ names|unique(case_sensitive=true)|list }}
{% set g = l|map('string') %}{{ g|join('-') }}|{{ g|join('-') }}|{{ g is iterable }}{{ g is sequence }}
{% for k, v in people|groupby('age') %}{{ k }}:{{ v|map(attribute='name')|join('+') }};{% endfor %}{% for g in names|groupby('0') %}{{ g.grouper }}{{ g.list }}{% endfor %}
{{ l|first }}{{ l|last }}{{ []|first }}{{ l|min }}{{ l|max }}{{ names|min }}{{ l|sum }}{{ people|sum(attribute='age') }}{{ l|reverse|list }}{{ s|reverse }}{{ l|join }}{{ l|join(', ') }}{{ people|join('/', attribute='name') }}{{ range(5)|list }}{{ range(1, 10, 3)|list }}{{ range(5, 0, -2)|list }}{{ range(3) }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }}{{ [1, 2, 3, 4, 5]|batch(2, 0)|list }}{{ [1, 2, 3, 4, 5]|slice(3)|list }}{{ [1, 2, 3, 4, 5]|slice(3, 0)|list }}
{{ '42'|int }}{{ '4.7'|int }}{{ 'x'|int }}{{ 'x'|int(9) }}{{ '0x1f'|int(base=16) }}{{ 3.9|int }}{{ none|int }}{{ ' 1_0 '|int }}{{ '1.5'|float }}{{ 'x'|float }}{{ 'inf'|float }}{{ -5|abs }}{{ 2.675|round(2) }}{{ 2.5|round }}{{ 3.5|round }}{{ 42.55|round(1, 'floor') }}{{ 42.51|round(1, 'ceil') }}{{ 1234|round(-2) }}{{ 7|round }}{{ n|string }}{{ f|string }}
{{ '<a> & "b"'|escape }}{{ '<a>'|safe }}{{ ('<a>'|safe) + '<b>' }}{{ ('<a>'|e) ~ '<b>' }}{{ '<p>a <b>b</b>  c</p>'|striptags }}{{ 'a b&c/d'|urlencode }}{{ {'a b': 'c&d'}|urlencode }}{{ {'a': 1, 'b': none, 'c': '<'}|xmlattr }}{{ '<'|forceescape }}{{ ['<']|map('escape')|list }}
{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent('> ', blank=true) }}|{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz'|truncate(5, false, '~', 0) }}|{{ 'a bc  d'|wordcount }}|{{ 'x'|center(5) }}|{{ '%s-%s'|format(1, 2) }}|{{ 1000000|filesizeformat }}{{ 1|filesizeformat }}{{ 500|filesizeformat }}{{ 2048|filesizeformat(true) }}
{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}{{ n is divisibleby(3) }}{{ s is string }}{{ l is sequence }}{{ d is mapping }}{{ d is iterable }}{{ n is number }}{{ t is number }}{{ t is boolean }}{{ t is true }}{{ n is integer }}{{ t is integer }}{{ f is float }}{{ nothing is none }}{{ s is not none }}{{ n is eq 7 }}{{ n is lt 8 }}{{ n is in [7] }}{{ 'a' is lower }}{{ 'A' is upper }}{{ s is sameas s }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ range is callable }}{{ ('a'|e) is escaped }}{{ missing is undefined }}
{{ dict(a=1, b=2) }}{{ dict([('x', 1)]) }}{{ dict({'a': 1}, c=3) }}{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner('|') %}{{ j() }}{{ j() }}
{{ strftime_now('%Y-%m-%d %H:%M %j %B') }}
{{ raise_exception('stop: ' ~ n) }}
{{ l.append(1) }}
{% if t %}{{ s|unknown_filter }}{% endif %}
{% if not t %}{{ s|unknown_filter }}{% endif %}fine
{{ s.__class__ }}{{ d.__len__ is defined }}
{% for m in messages %}{{ '<|' + m.role + '|>' }}{{ m.content|trim }}{% if m.tool_calls %}{{ m.tool_calls[0].arguments|tojson }}{% endif %}{% endfor %}
{% for m in messages %}{{ m['content'].split('\n')[-1] }}{% endfor %}{{ messages[0]['content'][2:5] }}{{ messages|map(attribute='role')|join(',') }}
{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}{% if not t %}{% set y = 1 %}{% endif %}{{ y is defined }}
{% for x in l %}{% if loop.first %}{% set z = x %}{% endif %}{{ z }}{% endfor %}{{ z is defined }}
{{ n if n > 3 else s.nope.nope }}{{ [n, [s, (1, 'a')], {'k': u}] }}
{{ x }}{% set x = 1 %}{{ x }}{% macro q() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ q() }}
{% for k in 'héy' %}{{ k }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for i in range(3) %}{{ i }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in 5 %}{% endfor %}
""".strip("\n").split("\n")

# Templates of several lines, and those that don't compile.
MORE = [
    "{% if t %}\n  a\n{% endif %}\n  {% for x in l %}\n    {{ x }}\n  {% endfor %}\nend\n",
    "{%- for x in l -%}\n  {{ x }}\n{%- endfor %}\n\n",
    "  {#- a -#}\n  b\r\nc\rd\n{# e #}\nf",
    "a\n   {% raw %}\n x {{ y }}\n   {% endraw %}\nb",
    "{% set x %}\n  line\n{% endset %}[{{ x }}]",
    "{{ 'a\nb' }}|{{ [1,\n 2] }}",
    "{% for x in l %}\n{{ x }}{% if not loop.last %},{% endif %}\n{% endfor %}",
    "{% macro m() %}\n  x\n{% endmacro %}\n{{ m() }}",
    "{{ 'unclosed }}", "{% if t %}", "{% endif %}", "{{ 1 + }}", "{{ (1 }}", "{% for x %}{% endfor %}", "{% set 1 = 2 %}",
    "{{ s|nope }}", "{{ s is nope }}", "{% nope %}", "{% break %}", "{{ a b }}", "{{ f(a=1, 2) }}", "{# open", "{% raw %}", "{{ 1 if }}",
    "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ x[1 }}", "{{ ! }}", "{% for loop in l %}{{ loop }}{% endfor %}",
    "{{ f(**d, *l) }}", "{% call s %}{% endcall %}", "{{ s is string is string }}",
]


def main():
    env, cache = jinja_lines.environment(), {}
    here = pathlib.Path(__file__).parent
    found = [json.loads(line) for line in (here / "fuzz_cases.txt").read_text().splitlines() if line]
    cases = [{"template": t, **jinja_lines.render(env, cache, t, json.loads(json.dumps(VARIABLES)))} for t in TEMPLATES + MORE + found]
    versions = f"jinja2 {jinja2.__version__}, markupsafe {importlib.metadata.version('markupsafe')}, Python {sys.version.split()[0]}"
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write('{"made_by": ' + json.dumps(f"tests/oracle/jinja.py with {versions}") + ',\n"variables": ')
        f.write(json.dumps(VARIABLES, ensure_ascii=False) + ',\n"cases": [\n')
        f.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
