"""Checks what `toold audit export --to DIR` wrote: python3 verify_export.py DIR [KEY.pem]

KEY.pem is what `toold audit key` printed, kept elsewhere. Without it the key that the
manifest names is believed: then only the files are known to belong together."""
import base64, hashlib, json, pathlib, sys

# Ed25519 (RFC 8032): a signature (R, s) of key A is good when s*B == R + h*A.
p, q = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
d, root = -121665 * pow(121666, -1, p) % p, pow(2, (p - 1) // 4, p)

def add(P, Q):
    (a, b), (x, y) = P, Q
    t = d * a * b * x * y % p
    return (a * y + x * b) * pow(1 + t, -1, p) % p, (b * y + a * x) * pow(1 - t, -1, p) % p

def times(n, P):
    total = (0, 1)
    for bit in bin(n)[2:]:
        total = add(total, total)
        total = add(total, P) if bit == "1" else total
    return total

def point(text):
    y = int.from_bytes(text, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
    x = pow(square, (p + 3) // 8, p)
    x = x if x * x % p == square else x * root % p
    assert x * x % p == square and y < p, "the key or the signature is no point of the curve"
    return (x if x & 1 == text[31] >> 7 else -x % p), y

def check(ok, complaint):
    ok or sys.exit("NOT as it was exported: " + complaint)

directory = pathlib.Path(sys.argv[1])
check((directory / "manifest.json").exists(), "it has no manifest: it was removed, or parts of the journal could not be exported")
text, signature = (directory / "manifest.json").read_bytes(), (directory / "manifest.sig").read_bytes()
try:
    manifest, messages = json.loads(text), (directory / "messages.jsonl").read_bytes()
    check(hashlib.sha256(messages).hexdigest() == manifest["sha256"], "messages.jsonl has other content than the manifest says")
    key = bytes.fromhex(manifest["key"])
    if len(sys.argv) > 2:
        key = base64.b64decode("".join(pathlib.Path(sys.argv[2]).read_text().splitlines()[1:-1]))[-32:]
    s, h = int.from_bytes(signature[32:], "little"), int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little")
    signed = len(signature) == 64 and s < q and times(s, point((b"\x58" + b"\x66" * 31)[:32])) == add(point(signature[:32]), times(h % q, point(key)))
    check(signed, "the manifest was not signed by this key")
    check(messages.count(b"\n") == manifest["messages"], "it has another number of messages")
except (AssertionError, KeyError, ValueError) as e:
    check(False, str(e))
print(f"as it was exported: {manifest['messages']} messages, of record {manifest['checkpoint']['number']} of the journal")
