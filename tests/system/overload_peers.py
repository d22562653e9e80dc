"""
Processes of other users for the overload tests: forked, so that they need no
file that only root may read, and speaking the protocol of the agent directly.
A greedy one asks for as much as the agent takes; a polite one asks one thing
after another and measures how long each takes.
"""

import json
import os
import select
import signal
import struct
import time
import traceback

import harness
import wire
from harness import check

KEY_PLACE = 16  # of the operation id in a CHECK


def needs_root():
    if os.getuid() != 0:
        raise harness.Skip("only root can be other users")


def sandbox_without_events(lab, key, cluster, zone):
    """rl-sandbox as fast as it is: a ledger costs more than the rest."""
    return harness.Sandbox(lab, lab.name("sandbox"), [
        harness.SANDBOX, "--key-file", key, "--stdin", "--listen",
        "127.0.0.1:0", "--cluster", str(cluster), "--dns", "127.0.0.1:0",
        "--zone", zone])


class Peer:
    """
    A child under another uid that runs function(tell, told, *args): tell()
    sends its parent a JSON value, told is a descriptor that reads the end of
    its input when it is to stop.
    """

    def __init__(self, lab, uid, function, *args, gid=None, groups=()):
        self.uid, self.status, self.buffer = uid, None, b""
        self.reader, out = os.pipe()
        told, self.stopper = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            os.close(self.stopper)
            self.child(out, told, uid, uid if gid is None else gid, groups,
                       function, args)
        os.close(out)
        os.close(told)
        lab.closers.append(self.close)

    @staticmethod
    def child(out, told, uid, gid, groups, function, args):
        def tell(value):
            os.write(out, json.dumps(value).encode() + b"\n")
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if os.getuid() == 0:
                os.setgroups(list(groups))
                os.setgid(gid)
                os.setuid(uid)
            function(tell, told, *args)
            os._exit(0)
        except BaseException:  # pylint: disable=broad-except
            tell({"trouble": traceback.format_exc()})
        finally:
            os._exit(1)

    def hear(self, timeout=harness.PATIENCE):
        """What the child tells next."""
        end = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.reader], [], [], left)[0]
            check(ready, "uid", self.uid, "says nothing")
            data = os.read(self.reader, 65536)
            check(data, "uid", self.uid, "ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        value = json.loads(line)
        check(not (isinstance(value, dict) and "trouble" in value), value)
        return value

    def stop(self):
        """Tells it to end; the last that it had to tell."""
        if self.stopper >= 0:
            os.close(self.stopper)
            self.stopper = -1
        return self.hear()

    def close(self):
        if self.status is not None:
            return
        if self.stopper >= 0:
            os.close(self.stopper)
            self.stopper = -1
        os.kill(self.pid, signal.SIGKILL)
        _, self.status = os.waitpid(self.pid, 0)
        os.close(self.reader)


def stopped(told, wait=0):
    """Has the parent said so? Waits that long for it, None for ever."""
    return bool(select.select([told], [], [], wait)[0])


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1,
                             int(share * len(sorted_values)))]


def polite(tell, told, path, rule, count):
    """count checks, one after the other; outcomes and microseconds."""
    client = wire.Client(path)
    frames = [wire.check(n + 2, rule, "polite") for n in range(count)]
    outcomes, times, reasons = {}, [], {}
    for frame in frames:
        begin = time.perf_counter_ns()
        client.send(frame)
        d = client.decision()
        times.append((time.perf_counter_ns() - begin) / 1000)
        outcomes[d.outcome] = outcomes.get(d.outcome, 0) + 1
        reasons[d.reason] = reasons.get(d.reason, 0) + 1
    client.close()
    times.sort()
    tell({"outcomes": outcomes, "reasons": reasons,
          "p50": percentile(times, 0.5), "p99": percentile(times, 0.99),
          "max": times[-1]})


class Burst:
    """One connection that sends count checks at once, again and again."""

    def __init__(self, path, rule, key, count, detail=False):
        self.client = wire.Client(path)
        self.client.sock.setblocking(False)
        self.count, self.next_id = count, 2
        self.frame = wire.check(0, rule, key, detail=detail)
        self.out = memoryview(b"")
        self.waits = 0
        self.tail = b""

    def fill(self):
        size = len(self.frame)
        data = bytearray(self.frame * self.count)
        ids = os.urandom(16 * self.count)
        for n in range(self.count):
            at = n * size
            struct.pack_into("<Q", data, at + 8, self.next_id + n)
            ident = bytearray(ids[16 * n:16 * n + 16])
            ident[6] = ident[6] & 0x0F | 0x40
            ident[8] = ident[8] & 0x3F | 0x80
            data[at + KEY_PLACE:at + KEY_PLACE + 16] = ident
        self.next_id += self.count
        self.waits += self.count
        self.out = memoryview(bytes(data))

    def write(self):
        """As much as goes; False when it may not be sent now."""
        while self.out:
            try:
                self.out = self.out[self.client.sock.send(self.out):]
            except BlockingIOError:
                return False
        return True

    def read(self, reasons):
        """What there is; how many decisions came, None at the end."""
        try:
            data = self.client.sock.recv(1 << 18)
        except BlockingIOError:
            return 0
        except ConnectionResetError:
            return None
        if not data:
            return None
        data, at, came = self.tail + data, 0, 0
        while len(data) - at >= 4:
            length, = struct.unpack_from("<I", data, at)
            if len(data) - at < length:
                break
            kind, = struct.unpack_from("<H", data, at + 4)
            check(kind == wire.DECISION, hex(kind), data[at:at + length])
            reason = wire.REASONS[data[at + 19]]
            reasons[reason] = reasons.get(reason, 0) + 1
            at, came = at + length, came + 1
        self.tail = data[at:]
        self.waits -= came
        return came


def greedy(tell, told, path, rule, count, connections):
    """
    count checks at once over so many connections; as soon as one is answered
    whole, it asks for as many again, until told to stop.
    """
    bursts = [Burst(path, rule, "greedy", count // connections)
              for _ in range(connections)]
    by_fd = {b.client.sock.fileno(): b for b in bursts}
    poller = select.poll()
    poller.register(told, select.POLLIN)
    reasons, rounds, ending = {}, 0, False
    for fd in by_fd:
        by_fd[fd].fill()
        poller.register(fd, select.POLLIN | select.POLLOUT)
    tell("ready")
    while any(b.waits for b in bursts):
        for fd, event in poller.poll(1000):
            if fd == told:
                ending = True
                poller.unregister(told)
                continue
            b = by_fd[fd]
            if event & (select.POLLIN | select.POLLHUP):
                if b.read(reasons) is None:
                    raise RuntimeError("closed: %r" % reasons)
            if b.waits == 0:
                rounds += 1
                if ending:
                    poller.modify(fd, 0)
                    continue
                b.fill()
            poller.modify(fd, select.POLLIN if b.write() else
                          select.POLLIN | select.POLLOUT)
    tell({"reasons": reasons, "rounds": rounds})


def deaf(tell, told, path, rule, count, detail=False):
    """
    Sends checks and never reads; tells when the agent takes no more for a
    second, and for another one, and at the end what became of it.
    """
    burst = Burst(path, rule, "deaf", count, detail)
    poller = select.poll()
    poller.register(told, select.POLLIN)
    poller.register(burst.client.sock, select.POLLOUT)
    taken = {"sent": 0, "blocked": 0, "closed": False}
    burst.fill()
    tell("ready")
    while True:
        events = poller.poll(1000)
        if not events and taken["blocked"] < 2 and not taken["closed"]:
            taken["blocked"] += 1
            tell("blocked")
        for fd, event in events:
            if fd == told:
                tell(taken)
                return
            before = len(burst.out)
            try:
                done = burst.write()
            except (BrokenPipeError, ConnectionResetError):
                event |= select.POLLHUP
            if event & (select.POLLHUP | select.POLLERR):
                taken["closed"] = True
                poller.unregister(fd)
                continue
            taken["sent"] += before - len(burst.out)
            if done:
                burst.fill()


def idle(tell, told, path, rule, count, checks=0):
    """
    So many connections that do nothing, or send some checks each and do not
    wait; what the agent said to each.
    """
    clients, said = [], []
    for _ in range(count):
        client = wire.Client(path, greet=False)
        clients.append(client)
        try:
            client.send(wire.hello())
        except (BrokenPipeError, ConnectionResetError):
            pass  # it is refused: its ERROR is there to be read
        kind, _, payload = client.receive()
        if kind == wire.ERROR:
            said.append(wire.ERRORS[struct.unpack_from("<H", payload)[0]])
            continue
        check(kind == wire.WELCOME, hex(kind))
        said.append("welcome")
        client.send(b"".join(wire.check(n + 2, rule, "idle")
                             for n in range(checks)))
    tell(said)
    stopped(told, None)
    for client in clients:
        client.close()
    tell("closed")
