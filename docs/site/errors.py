"""Generates the page of error messages from the checks in src and include."""

import collections
import re

Message = collections.namedtuple("Message", "text file")
Call = collections.namedtuple("Call", "name before begin")  # number of arguments before a message; words before it

CHECKS = [Call("TORCH_CHECK", 1, []), Call("TORCH_CHECK_VALUE", 1, []), Call("TORCH_CHECK_TYPE", 1, []),
          Call("TORCH_CHECK_INDEX", 1, []), Call("TORCH_CHECK_NOT_IMPLEMENTED", 1, []), Call("TORCH_CHECK_WITH", 2, []),
          Call("TORCH_WARN", 0, []), Call("TORCH_WARN_ONCE", 0, []), Call("throw ImageError", 0, []),
          Call("throw NoImageLibrary", 0, [])]
# Matches a function that forwards its last arguments to a check, such as void check(bool holds, const Parts&... parts).
FORWARDING = re.compile(r"template <class\.\.\. Parts>\n\s*void (\w+)\(([^()]*), const Parts&\.\.\. parts\)[^{]*\{\s*"
                        r"(TORCH_CHECK\w*)(\()")
CONSTANT = re.compile(r'\b(?:auto|char|string|string_view)\b[\w* ]*?\b(\w+)(?:\[\])? = ((?:"(?:[^"\\\n]|\\.)*"\s*)+);')
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|[()\[\]{},?:+]|[^"\'()\[\]{},?:+/]+|/', re.S)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}


def arguments_at(text, begin):
    """Returns the arguments of the call whose opening parenthesis is at `begin`. Each argument is a list of tokens."""
    depth, arguments = 0, [[]]
    for match in TOKEN.finditer(text, begin):
        token = match[0]
        if token.startswith("//"):
            continue
        if token in "([{":
            depth += 1
            if depth == 1:
                continue
        if token in ")]}":
            depth -= 1
            if depth == 0:
                return arguments
        if token == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    raise ValueError(f"no end of the call at {text[begin - 20:begin + 40]!r}")


def split(tokens, separator):
    """Splits the tokens at separators that are outside parentheses."""
    depth, parts = 0, [[]]
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def words_of(argument):
    """Returns the text for an argument, which is the contents of string literals or the name of a value in angle
    brackets."""
    tokens = [token for token in argument if token.strip()]
    if tokens and all(token.startswith('"') for token in tokens):
        return "".join(re.sub(r"\\(.)", lambda escaped: ESCAPES.get(escaped[1], ""), token[1:-1]) for token in tokens)
    asked = split(tokens, "?")
    if len(asked) == 2:  # a choice between two texts
        either = [words_of(part) for part in split(asked[1], ":")]
        return "/".join(part for part in either if part)
    if len(sums := split(tokens, "+")) > 1 and '"' in "".join(tokens):
        return "".join(map(words_of, sums))
    # The last name describes a value, so options.decay and value.sizes() become decay and sizes. In a call to a free
    # function, the last name is the name of the argument, so std::abs(lr) becomes lr.
    names = re.findall(r"[A-Za-z_]\w*", re.sub(r'"[^"]*"', "", "".join(tokens)))
    return f"<{names[-1].rstrip('_')}>" if names else ""


def calls_of(text):
    """Returns the functions in a source file that forward their arguments to a check."""
    calls = []
    for match in FORWARDING.finditer(text):
        parameters = [parameter.split()[-1] for parameter in match[2].split(",")]
        arguments = arguments_at(text, match.start(4))
        skipped = next(call.before for call in CHECKS if call.name == match[3])
        # The function's own text that precedes the message. The function's parameters are replaced with the positions
        # of the call's arguments.
        begin = [parameters.index(name) if (name := "".join(argument).strip()) in parameters else words_of(argument)
                 for argument in arguments[skipped:-1]]
        calls.append(Call(match[1], len(parameters), begin))
    return calls


def messages_of(text, calls):
    """Yields the text of each message in a source file, skipping messages that contain no words."""
    known = {call.name: call for call in calls}
    texts = collections.defaultdict(set)
    for match in CONSTANT.finditer(text):
        texts[f"<{match[1].rstrip('_')}>"].add(words_of(TOKEN.findall(match[2])))
    constants = {name: found.pop() for name, found in texts.items() if len(found) == 1}
    for match in re.finditer(rf"(?<![\w.>:])({'|'.join(known)})\(", text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if line.lstrip().startswith("//") or re.search(r"\bvoid $", line):
            continue
        call, arguments = known[match[1]], arguments_at(text, match.end() - 1)
        begin = [words_of(arguments[part]) if isinstance(part, int) else part for part in call.begin]
        parts = [*begin, *map(words_of, arguments[call.before:])]
        message = " ".join("".join([constants.get(parts[0], parts[0]), *parts[1:]]).split())
        message = re.sub(r"^(<\w+>)+(: )?(?=\w)", "...: ", message)  # a function or file that only the caller knows
        if len(re.findall(r"[A-Za-z]{3,}", re.sub(r"<[^>]*>|\w+(::\w+)+", "", message))) > 1:
            yield message


def collected(project):
    """Returns each of the library's messages once, with the file that contains it."""
    found = {}
    for folder in (project / "src", project / "include/sconce"):
        for file in sorted([*folder.rglob("*.cpp"), *folder.rglob("*.hpp")]):
            text = file.read_text()
            calls = [*CHECKS, *calls_of(text)]
            for header in file.parent.glob("*.hpp"):  # included by the sources in the folder
                calls += calls_of(header.read_text())
            for message in messages_of(text, calls):
                found.setdefault(message, Message(message, file.relative_to(project).as_posix()))
    return sorted(found.values(), key=lambda message: (message.file, message.text))


def folder_of(message):
    """Returns the file's folder within src or include/sconce, or "core"."""
    path = re.sub(r"^(src|include/sconce)/(no_cuda/)?", "", message.file)
    return path.partition("/")[0] if "/" in path else "core"


def page(project, linked):
    """Returns the page. `linked` returns Markdown in which inline code is linked to the reference."""
    by_folder = collections.defaultdict(list)
    for message in collected(project):
        by_folder[folder_of(message)].append(message)
    lines = ["# Error messages", "",
             "The messages of sconce's exceptions, which are `c10::Error` or derived from it, and of its warnings. The search",
             "finds this page by the words of a message. `<name>` stands for a value, and `...` for a function or a file.", ""]
    for folder, messages in sorted(by_folder.items()):
        lines += [f"## {folder}", ""]
        for message in messages:
            who = re.match(r"(sconce(?:::\w+)+)", message.text)
            ticks = "``" if "`" in message.text else "`"
            lines.append(f"- {ticks}{message.text}{ticks}<br>" + (linked(f"`{who[1]}`") + ", " if who else "") + message.file)
        lines.append("")
    return "\n".join(lines)
