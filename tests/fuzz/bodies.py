"""Ways to write statements."""

from tests.fuzz.expressions import any_kind
from tests.fuzz.writer import (
    BOOL,
    FUNCTION,
    INT,
    INTS,
    OBJECT,
    SET,
    STR,
    TABLE,
    TENSOR,
    TENSORS,
    Writer,
    statement,
    statements,
)

statements(
    "{log}.append({int})",
    "{log}.append({str})",
    "{log}.append(({int}, {bool}))",
    "print({int}, {str})",
    "print({str}, end={str})",
    "{var_ints}.append({int})",
    "{var_ints}.extend({ints}[:3])",
    "{var_ints}.insert({int}, {int})",
    "{var_ints}.sort()",
    "{var_ints}.reverse()",
    "{var_ints}[{int}:{int}] = {ints}[:3]",
    "{var_ints}.remove({int})",
    "{var_ints}.clear()",
    "{var_tensors}.append({tensor})",
    "{var_tensors}.extend({tensors}[:2])",
    "{var_tensors}.pop()",
    "{var_table}.update({table})",
    "{var_table}.update(a={int})",
    "{var_table}.pop({str})",
    "{var_table}.setdefault({str}, {int})",
    "{var_set}.add({int})",
    "{var_set}.discard({int})",
    "{var_set}.update({ints})",
    "{var_set}.remove({int})",
    "{var_tensor}.add_({tensor})",
    "{var_tensor}.mul_({int})",
    "{var_tensor}.detach().zero_()",
    "{var_object}.step()",
    "setattr({var_object}, 'count', {int})",
    "assert {bool}, {str}",
    "next(helper_generator({int}, {ints}), None)",
    "dynamo.graph_break()",
    "helper_effects({var_ints}, {log})",
    "helper_effects(LOG, {var_ints})",
    "pass",
    "NET.eval()",
    "NET.train()",
    "NET.seen.zero_()",
)
#: assignments that only some names can take, filled where a variable exists
_TARGETS = (
    (INTS, "{name}[{int}] = {int}"),
    (INTS, "{name}[{int}] += {int}"),
    (INTS, "del {name}[{int}]"),
    (INTS, "del {name}[{int}:]"),
    (INTS, "{name} += {ints}[:3]"),
    (INTS, "{name}[:] = {name}[:4] * {small}"),
    (INTS, "{name}[0], {name}[-1] = {name}[-1], {name}[0]"),
    (TENSORS, "{name}[{int}] = {tensor}"),
    (TENSORS, "{name} += {tensors}[:2]"),
    (TENSORS, "{name}[{int}].add_({int})"),
    (TENSORS, "{name}[{int}] *= {tensor}"),
    (TABLE, "{name}[{str}] = {int}"),
    (TABLE, "{name}[{str}] += {int}"),
    (TABLE, "del {name}[{str}]"),
    (TABLE, "{name} |= {table}"),
    (OBJECT, "{name}.count = {int}"),
    (OBJECT, "{name}.count += {int}"),
    (OBJECT, "{name}.value = {tensor}"),
    (OBJECT, "{name}.value += {tensor}"),
    (OBJECT, "{name}.doubled = {tensor}"),
    (OBJECT, "{name} += {int}"),
    (OBJECT, "{name}.extra = {ints}"),
    (OBJECT, "del {name}.count"),
    (TENSOR, "{name} += {tensor}"),
    (TENSOR, "{name} *= {int}"),
    (TENSOR, "{name}[{small}] = {int}"),
    (TENSOR, "{name}[{small}:] += {tensor}"),
    (TENSOR, "{name}[{name} > {int}] = {int}"),
    (TENSOR, "{name} = {name} - {tensor}"),
    (INT, "{name} += {int}"),
    (INT, "{name} -= {int}"),
    (INT, "{name} //= {int}"),
    (STR, "{name} += {str}[:5]"),
    (SET, "{name} |= {set}"),
    (SET, "{name} -= {set}"),
)


@statement(weight=16)
def _assign(writer: Writer) -> None:
    kind = any_kind(writer)
    text = writer.value(kind)
    name = writer.target(kind)
    writer.line(f"{name} = {text}")
    writer.bind(name, kind)


@statement(weight=14)
def _change(writer: Writer) -> None:
    kind, text = writer.random.choice(_TARGETS)
    name = writer.variable(kind)
    if name is None or (text.startswith("{name} ") and name not in writer.assignable):
        return _assign(writer)
    writer.line(writer.fill(text.replace("{name}", name), 1))
    return None


@statement(weight=3)
def _alias(writer: Writer) -> None:
    if not writer.scope:
        return _assign(writer)
    name, kind = writer.random.choice(list(writer.scope.items()))
    other = writer.target(kind)
    writer.line(f"{other} = {name}")
    writer.bind(other, kind)


@statement(weight=3)
def _unpack(writer: Writer) -> None:
    first, rest = writer.fresh(), writer.fresh()
    which = writer.random.randint(0, 4)
    if which == 0:
        writer.line(writer.fill(f"{first}, *{rest} = {{ints}}", 1))
        writer.bind(first, INT)
        writer.bind(rest, INTS)
    elif which == 1:
        writer.line(writer.fill(f"*{rest}, {first} = {{tensors}}", 1))
        writer.bind(first, TENSOR)
        writer.bind(rest, TENSORS)
    elif which == 2:
        writer.line(writer.fill(f"{first}, {rest} = {{pair}}", 1))
    elif which == 3:
        writer.line(writer.fill(f"({first}, _), {rest} = ({{int}}, 1), {{ints}}", 1))
        writer.bind(first, INT)
        writer.bind(rest, INTS)
    else:
        writer.line(writer.fill(f"{first} = {rest} = {{ints}}", 1))
        writer.bind(first, INTS)
        writer.bind(rest, INTS)
    return None


@statement(weight=9)
def _if(writer: Writer) -> None:
    condition = writer.random.choice(
        ("{bool}", "{bool}", "{int}", "{tensor}.sum() > {int}", "{ints}", "{str}")
    )
    with writer.block(writer.fill(f"if {condition}:", 1)):
        writer.body(3)
    if writer.chance(0.3):
        with writer.block(writer.fill("elif {bool}:", 1)):
            writer.body(2)
    if writer.chance(0.5):
        with writer.block("else:"):
            writer.body(3)


_ITERABLES = (
    (INT, "range({small})"),
    (INT, "{ints}[:6]"),
    (INT, "{var_ints}"),
    (INT, "helper_generator({int}, {ints})"),
    (INT, "sorted({set})"),
    (INT, "reversed({ints}[:6])"),
    (INT, "{table}.values()"),
    (INT, "({int}, {int})"),
    (INT, "(k + 1 for k in {ints}[:6])"),
    (INT, "{object}"),
    (STR, "{table}"),
    (STR, "{str}[:5]"),
    (STR, "list({table})"),
    (TENSOR, "{tensors}[:4]"),
    (TENSOR, "helper_tensors({tensors})"),
    (TENSOR, "{tensor}"),
)


@statement(weight=7)
def _for(writer: Writer) -> None:
    if writer.loops > 1:
        return _assign(writer)
    kind, iterable = writer.random.choice(_ITERABLES)
    items = writer.fill(iterable, 1)
    name = writer.fresh()
    header = f"for {name} in {items}:"
    index = None
    if writer.chance(0.2):
        index = writer.fresh()
        header = f"for {index}, {name} in enumerate({items}):"
    with writer.block(header):
        writer.bind(name, kind)
        if index is not None:
            writer.bind(index, INT)
        if iterable == "{var_ints}":  # the list may grow as it is read
            with writer.block(f"if len({items}) > 12:"):
                writer.line("break")
        writer.loops += 1
        writer.body(3)
        writer.loops -= 1
    if writer.chance(0.15):
        with writer.block("else:"):
            writer.body(2)
    return None


@statement(weight=3)
def _while(writer: Writer) -> None:
    if writer.loops > 1:
        return _assign(writer)
    name = writer.fresh("i")
    writer.line(f"{name} = 0")
    with writer.block(writer.fill(f"while {name} < {{small}} and {{bool}}:", 1)):
        writer.line(f"{name} += 1")
        writer.scope[name] = BOOL  # read only: nothing else may keep the loop from its end
        writer.loops += 1
        writer.body(3)
        writer.loops -= 1
    if writer.chance(0.2):
        with writer.block("else:"):
            writer.body(2)
    return None


@statement(weight=3)
def _leave_loop(writer: Writer) -> None:
    if not writer.loops:
        return _assign(writer)
    with writer.block(writer.fill("if {bool}:", 1)):
        writer.line(writer.random.choice(("break", "continue")))
    return None


@statement(weight=3)
def _return(writer: Writer) -> None:
    with writer.block(writer.fill("if {bool}:", 1)):
        writer.line(writer.fill(f"return {{{_hole(writer.returns)}}}", 1))


def _hole(kind: str) -> str:
    return {INT: "int", TENSOR: "tensor", STR: "str"}.get(kind, "pair")


_RAISES = (
    "raise ValueError({str})",
    "raise KeyError({int})",
    "raise Custom({str}, {int})",
    "raise RuntimeError({str}, {int})",
    "raise StopIteration",
    "raise IndexError",
    "raise TypeError({str}) from ValueError({int})",
)
_ERRORS = (
    "ValueError",
    "KeyError",
    "(IndexError, ZeroDivisionError)",
    "Custom",
    "LookupError",
    "Exception",
    "Exception",
    "ArithmeticError",
    "TypeError",
    "AttributeError",
    "RuntimeError",
)


@statement(weight=3)
def _raise(writer: Writer) -> None:
    text = writer.fill(writer.random.choice(_RAISES), 1)
    with writer.block(writer.fill("if {bool}:", 1)):
        writer.line(text)


@statement(weight=7)
def _try(writer: Writer) -> None:
    with writer.block("try:"):
        writer.body(3)
    handlers = writer.random.randint(0, 2)
    for _ in range(handlers):
        bound = writer.chance(0.5)
        error = writer.random.choice(_ERRORS)
        with writer.block(f"except {error} as error:" if bound else f"except {error}:"):
            if bound:
                writer.line("LOG.append((type(error).__name__, str(error.args)))")
            writer.body(2)
            if writer.chance(0.15):
                writer.line("raise")
            elif bound and writer.chance(0.1):
                writer.line("raise Custom('again') from error")
    if handlers and writer.chance(0.2):
        with writer.block("else:"):
            writer.body(2)
    if not handlers or writer.chance(0.3):
        with writer.block("finally:"):
            outer, writer.loops = writer.loops, 0  # `continue` in finally is a warning of later versions
            writer.body(2)
            writer.loops = outer


_MANAGERS = (
    "Logged(LOG, {str})",
    "Logged(LOG, {str}, swallow={bool})",
    "logging(LOG, {str})",
    "torch.no_grad()",
    "torch.enable_grad()",
    "contextlib.suppress(ZeroDivisionError, LookupError)",
    "contextlib.nullcontext({int})",
    "Logged(LOG, {str}) as _, logging(LOG, {str})",
)


@statement(weight=5)
def _with(writer: Writer) -> None:
    with writer.block(writer.fill(f"with {writer.random.choice(_MANAGERS)}:", 1)):
        writer.body(3)


@statement(weight=4)
def _match(writer: Writer) -> None:
    subject = writer.random.choice(
        ("{int}", "{pair}", "{ints}", "{table}", "Point({int}, {int})", "{str}", "{object}")
    )
    with writer.block(writer.fill(f"match {subject}:", 1)):
        patterns = writer.random.sample(
            (
                "case 1 | 2:",
                "case int(k):",
                "case Pair(first=0, second=k):",
                "case [k, *_]:",
                "case (k, 1):",
                "case {'a': k, **others}:",
                "case Point(x=k, y=2):",
                "case Point(k, _):",
                "case Derived(count=k):",
                "case 'a' | 'bc' as k:",
                "case str():",
                "case []:",
                "case Colour.RED:",
                writer.fill("case k if {bool}:", 1),
            ),
            writer.random.randint(1, 4),
        )
        for pattern in [*patterns, *(["case _:"] if writer.chance(0.5) else [])]:
            with writer.block(pattern):
                writer.body(2)


_PARAMETERS = (
    ("{a}", "{name}({int})"),
    ("{a}, b={small}", "{name}({int})"),
    ("{a}, *rest", "{name}({int}, {int}, {int})"),
    ("{a}, *, b={small}", "{name}({int}, b={int})"),
    ("{a}, /, **more", "{name}({int}, a={int})"),
    ("{a}, b=LOG", "{name}({int})"),
)


@statement(weight=6)
def _nested_function(writer: Writer) -> None:
    if writer.functions > 2:
        return _assign(writer)
    name, parameter = writer.fresh("f"), writer.fresh("a")
    parameters, _ = writer.random.choice(_PARAMETERS)
    if writer.chance(0.2):
        writer.line(writer.random.choice(("@doubling", "@counting", "@functools.lru_cache(maxsize=None)")))
    shared = writer.variable(INT) if writer.chance(0.4) else None
    header = writer.fill(parameters.replace("{a}", parameter), 2)
    with writer.function(f"def {name}({header}):", {parameter: INT}, INT):
        if shared is not None and shared != "COUNT":
            writer.line(f"nonlocal {shared}")
            writer.bind(shared, INT)
        writer.body(3)
        writer.line(writer.fill("return {int}", 1))
    if writer.chance(0.6):
        writer.line(writer.fill(f"LOG.append({name}({{int}}))", 2))
    writer.bind(name, FUNCTION)
    return None


@statement(weight=3)
def _nested_generator(writer: Writer) -> None:
    if writer.functions > 2:
        return _assign(writer)
    name, parameter, items = writer.fresh("g"), writer.fresh("a"), writer.fresh()
    with writer.function(f"def {name}({parameter}):", {parameter: INT}, INT):
        writer.yields = INT
        writer.body(2)
        writer.line(writer.fill("yield {int}", 1))
        writer.body(2)
    writer.line(writer.fill(f"{items} = list({name}({{int}}))", 2))
    writer.bind(items, INTS)
    return None


@statement(weight=5)
def _yield(writer: Writer) -> None:
    if writer.yields is None:
        return _assign(writer)
    received = writer.fresh()
    texts = (
        "yield {int}",
        "yield from {ints}",
        f"{received} = yield {{int}}",
        f"{received} = (yield {{int}}) or {{int}}",
    )
    text = writer.random.choice(texts if writer.yields == INT else ("yield {tensor}", "yield from {tensors}"))
    writer.line(writer.fill(text, 1))
    if " or " in text:
        writer.bind(received, INT)
    return None


@statement(weight=2)
def _global(writer: Writer) -> None:
    writer.line(writer.fill("STATE['count'] = {int}", 1))
    writer.line(writer.fill("LOG.append(STATE['count'])", 1))


@statement(weight=1)
def _delete(writer: Writer) -> None:
    names = sorted(name for name in writer.assignable & set(writer.scope) if name[0] == "v")
    if writer.nesting > 1 or not names:
        return
    name = writer.random.choice(names)
    writer.line(f"del {name}")
    del writer.scope[name]


@statement(weight=3)
def _class(writer: Writer) -> None:
    name = writer.fresh("C")
    base = writer.random.choice(("", "(Base)", "(Derived)"))
    with writer.block(f"class {name}{base}:"):
        writer.line(writer.fill("label = {str}", 1))
        with writer.function("def get(self, k=1):", {"k": INT}, INT):
            writer.body(1)
            writer.line(writer.fill("return {int}", 1))
    made = f"{name}({writer.value(TENSOR, 2)})" if base else f"{name}()"
    writer.line(f"LOG.append({made}.get())")
    writer.line(f"LOG.append({made}.label)")
