"""What scripts/serve.py tells a service manager."""

import socket

import pytest

from scripts import serve


@pytest.mark.parametrize("prefix", ["", "@"])
def test_it_finds_the_socket_of_the_service_manager(monkeypatch, tmp_path, prefix):
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", prefix + path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + path if prefix else path)
        manager.settimeout(5)
        serve.tell_manager(b"READY=1")
        assert manager.recv(64) == b"READY=1"


def test_it_is_silent_without_one(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    sent = []
    monkeypatch.setattr(socket.socket, "sendto", lambda *args: sent.append(args))
    serve.tell_manager(b"READY=1")
    assert sent == []
