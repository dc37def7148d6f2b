"""A provider of identities on loopback that speaks OpenID Connect, and can lie."""

import json
import secrets
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

CLIENT, SECRET = "windowpane", "a secret of the client"


class IdentityProvider:
    """An OpenID Connect provider for one user, whose claims are `claims`.

    `bend` changes a whole ID token before it is signed, `sign` signs it in another way.
    """

    def __init__(self) -> None:
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.codes: dict[str, dict] = {}
        # Refresh tokens that still work, each once, with what was asked for first.
        self.refresh_tokens: dict[str, dict] = {}
        self.reset()

    def reset(self, **claims) -> None:
        self.claims = {"sub": "1", "preferred_username": "alice", **claims}
        self.bend, self.sign, self.userinfo = {}, self.sign_right, {}
        # What it answers to a refresh token, in place of tokens: a status and a body; 0
        # hangs up.
        self.refusal: tuple[int, dict] | None = None
        self.asked_again = 0
        self.rotate_key()

    def rotate_key(self) -> None:
        self.key, self.kid = (
            ec.generate_private_key(ec.SECP256R1()),
            secrets.token_hex(4),
        )

    def sign_right(self, token: dict) -> str:
        return jwt.encode(token, self.key, "ES256", headers={"kid": self.kid})

    def __enter__(self) -> Self:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def publish(self) -> dict:
        names = ("authorization", "token", "userinfo")
        ends = {f"{name}_endpoint": f"{self.url}/{name}" for name in names}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **ends}

    def publish_keys(self) -> dict:
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": self.kid, "alg": "ES256", "use": "sig"}]}

    def authorize(self, asked: dict) -> str:
        """Return the address to which the browser is led, with a code."""
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"]}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def give_tokens(self, form: dict) -> dict | None:
        is_again = form["grant_type"] == "refresh_token"
        given = self.refresh_tokens if is_again else self.codes
        asked = given.pop(form["refresh_token" if is_again else "code"], None)
        if asked is None or form.get("client_secret", SECRET) != SECRET:
            return None
        if is_again:
            asked = {**asked, "nonce": None}
        now = int(time.time())
        token = {
            **{"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300},
            **{"nonce": asked.get("nonce"), **self.claims, **self.bend},
        }
        given = {name: value for name, value in token.items() if value is not None}
        tokens = {
            "access_token": "opaque",
            "token_type": "Bearer",
            "id_token": self.sign(given),
        }
        if "offline_access" in asked["scope"]:
            tokens["refresh_token"] = secrets.token_urlsafe(16)
            self.refresh_tokens[tokens["refresh_token"]] = asked
        return tokens


def _make_handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: v[0] for name, v in parse_qs(parts.query).items()}
            if parts.path == "/authorization":
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            answers = {
                "/.well-known/openid-configuration": provider.publish,
                "/keys": provider.publish_keys,
                "/userinfo": lambda: provider.userinfo,
            }
            self.answer(answers[parts.path]())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            is_again = form["grant_type"] == "refresh_token"
            provider.asked_again += is_again
            if provider.refusal and is_again:
                status, refusal = provider.refusal
                if status:
                    self.answer(refusal, status)
                return
            given = provider.give_tokens(form)
            self.answer(given or {"error": "invalid_grant"}, 200 if given else 400)

        def answer(self, value: dict, status: int = 200) -> None:
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            """Keep the log out of the output of the tests."""

    return Handler
