"""What ctypes believes of the C interface against the header that it comes from."""

import ctypes
import pathlib
import re
import subprocess
import tempfile
import unittest
import unittest.mock

from paceline import _abi, errors, operation

ROOT = pathlib.Path(__file__).resolve().parents[4]
HEADER = ROOT / "api/c/paceline/paceline.h"
STRUCTS = {
    "paceline_options": _abi.Options,
    "paceline_remote_memory": _abi.RemoteMemory,
    "paceline_handle": _abi.Handle,
    "paceline_buffer": _abi.Buffer,
    "paceline_completion": _abi.Completion,
    "paceline_counter": _abi.Counter,
}


class AbiTest(unittest.TestCase):
    def test_every_exported_function_is_bound(self):
        exported = re.findall(r"^\s+paceline_(\w+);", (ROOT / "api/c/paceline.map").read_text(), re.MULTILINE)
        self.assertEqual(sorted(exported), sorted(_abi.FUNCTIONS))

    def test_constants_have_the_values_of_the_header(self):
        values = {name: int(value) for name, value in re.findall(r"PACELINE_(\w+) = (\d+)", HEADER.read_text())}
        for prefix, kind in (("", _abi.Access), ("", _abi.Operation), ("STATUS_", _abi.Status), ("CLOSE_", _abi.CloseCode)):
            for name, member in kind.__members__.items():
                if name != "NONE":
                    self.assertEqual(values[prefix + name], member.value, name)
        for name in ("OK", "TIMED_OUT", "TRY_AGAIN", "CONNECTING", "ESTABLISHED", "CLOSED", "USE_ENVIRONMENT"):
            self.assertEqual(values[name], getattr(_abi, name), name)

    def test_values_of_a_later_library_are_taken(self):
        for kind in (_abi.CloseCode, _abi.Status, _abi.Operation):
            later = kind(4711)
            self.assertIsInstance(later, kind)
            self.assertEqual((later, later.name), (4711, "UNKNOWN_4711"))
            self.assertNotIn(later, list(kind))
            self.assertRaises(ValueError, kind, "no number")
        raw = _abi.Completion(operation=4711, status=4712)
        self.assertEqual(operation.Completion.of(raw).status, 4712)

    def test_a_library_that_is_not_there_is_named(self):
        with unittest.mock.patch.dict("os.environ", PACELINE_LIBRARY="/nowhere/library"):
            with self.assertRaisesRegex(ImportError, "PACELINE_LIBRARY=/nowhere/library: .*No such file"):
                _abi._load()

    def test_every_result_has_an_exception(self):
        text = HEADER.read_text()
        results = text[text.index("typedef enum paceline_result") : text.index("} paceline_result;")]
        codes = {int(code) for code in re.findall(r"= (\d+),", results)} - {_abi.OK}
        self.assertEqual(codes, {kind.code for kind in errors.Error.__subclasses__() if kind.code is not None})

    def test_structs_have_the_layout_of_the_header(self):
        compiler = "cc"
        lines = ["#include <stddef.h>", "#include <stdio.h>", f'#include "{HEADER}"', "int main(void) {"]
        wanted = []
        for name, struct in STRUCTS.items():
            lines.append(f'printf("%zu\\n", sizeof({name}));')
            wanted.append(ctypes.sizeof(struct))
            for field, _ in struct._fields_:
                lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
                wanted.append(getattr(struct, field).offset)
        lines.append("return 0; }")
        with tempfile.TemporaryDirectory() as folder:
            source, program = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
            source.write_text("\n".join(lines))
            try:
                subprocess.run([compiler, source, "-o", program], check=True)
            except FileNotFoundError:
                self.skipTest("no C compiler called cc")
            out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual([int(line) for line in out.split()], wanted)


if __name__ == "__main__":
    unittest.main()
