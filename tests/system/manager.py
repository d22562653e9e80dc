"""
What a service manager does for a service, as systemd does it: it holds
listening sockets and passes them to one process after the other
(LISTEN_FDS), and it hears what they tell (NOTIFY_SOCKET).
"""

import fcntl
import os
import select
import socket
import sys

import harness
from harness import check, poll

# Where sockets wait until the process that gets them has moved them to 3.
HIGH = 100

LAUNCH = """
import os, sys
fds = [int(fd) for fd in sys.argv[1].split(",") if fd]
for number, fd in enumerate(fds):
    os.dup2(fd, 3 + number)
os.closerange(3 + len(fds), 3 * %d)
os.environ["LISTEN_PID"] = os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
""" % HIGH


class Held:
    """A socket that stays, whoever comes and goes."""

    def __init__(self, name, sock, path):
        self.name, self.sock, self.path = name, sock, path
        self.fd = fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH)

    def waited_for(self):
        """Has somebody connected whom nobody has accepted yet?"""
        return bool(select.select([self.sock], [], [], 0)[0])

    def close(self):
        os.close(self.fd)
        self.sock.close()


class Manager:
    def __init__(self, lab):
        self.lab = lab
        self.held = []
        self.env = {}
        self.notified = None
        self.messages = []
        lab.closers.append(self.close)

    def close(self):
        for held in self.held:
            held.close()
        self.held = []
        if self.notified:
            self.notified.close()

    # Sockets.

    def listen(self, name, path, mode=0o600, kind=socket.SOCK_STREAM,
               deaf=False):
        sock = socket.socket(socket.AF_UNIX, kind)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        sock.bind(path)
        os.chmod(path, mode)
        if not deaf and kind == socket.SOCK_STREAM:
            sock.listen(4096)
        return self.hold(name, sock, path)

    def hold(self, name, sock, path):
        self.held.append(Held(name, sock, path))
        return self.held[-1]

    def drop(self):
        """All of them, and their files."""
        for held in self.held:
            held.close()
            if os.path.exists(held.path):
                os.unlink(held.path)
        self.held = []

    # Notifications.

    def notify(self, address):
        """address: a path, or "@name" for an abstract socket."""
        self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notified.setblocking(False)
        self.notified.bind(address.replace("@", "\0", 1)
                           if address[0] == "@" else address)
        self.env["NOTIFY_SOCKET"] = address

    def heard(self):
        """All messages so far; each is a list of its lines."""
        while self.notified:
            try:
                message = self.notified.recv(65536).decode()
            except BlockingIOError:
                break
            check(message and not message.endswith("\n"), repr(message))
            self.messages.append(message.split("\n"))
        return self.messages

    def lines(self, *keys):
        """The lines that begin with one of these keys."""
        return [line for message in self.heard() for line in message
                if line.split("=")[0] in keys]

    def wait_for(self, line, times=1):
        """A line, or its beginning."""
        def there():
            return sum(one.startswith(line) for message in self.heard()
                       for one in message) >= times
        poll("%s in %r" % (line, self.messages[-5:]), there)

    # The service.

    def start(self, path, ready=True, held=None, env=None, argv=None):
        """rl-agent on a configuration, with the sockets."""
        held = self.held if held is None else held
        more = dict(self.env, **(env or {}))
        if held:
            more.setdefault("LISTEN_FDS", str(len(held)))
            more.setdefault("LISTEN_FDNAMES",
                            ":".join(one.name for one in held))
        agent = harness.Agent(
            self.lab, self.lab.name("agent"),
            [sys.executable, "-c", LAUNCH,
             ",".join(str(one.fd) for one in held)] +
            (argv or [harness.AGENT, "-c", path]),
            self.lab.socket_path(), more, tuple(one.fd for one in held))
        return agent.ready() if ready else agent
