"""RateLimiter as its description has it, and schedules of calls to try it with.

Seed is the text of the description (SmoothBursty: storedPermits, maxPermits,
nextFreeTicket), in two kinds of numbers. As it is written, it computes with
doubles and cuts every wait to whole microseconds; that is Guava, digit by
digit. With fractions nothing is cut: that is ours, to the microsecond.

A schedule is a list of lines as ratelimiter_probe.c reads them.
"""

import math
import random
from fractions import Fraction

ONE = 10**12        # the unit of a rate: permits a second
MAX_PERMITS = 10**6
DAY_US = 86400 * 10**6


class Seed:
    """The description, with doubles, as it is written."""

    number = float
    whole = int

    def __init__(self, rate, burst_us, now):
        self.stored_permits = self.max_permits = self.number(0)
        self.next_free_ticket = 0
        self.stable_interval = self.number(0)
        self.burst_seconds = self.number(burst_us) / 10**6
        self.set_rate(rate, now)

    def resync(self, now):
        if now > self.next_free_ticket:
            if self.max_permits > 0:
                new_permits = (now - self.next_free_ticket) / \
                    self.stable_interval
                self.stored_permits = min(
                    self.max_permits, self.stored_permits + new_permits)
            self.next_free_ticket = now

    def set_rate(self, rate, now):
        self.resync(now)
        permits_per_second = self.number(rate) / ONE
        self.stable_interval = 10**6 / permits_per_second
        old_max_permits = self.max_permits
        self.max_permits = self.burst_seconds * permits_per_second
        if old_max_permits > 0:
            self.stored_permits = \
                self.stored_permits * self.max_permits / old_max_permits

    def acquire(self, required_permits, now):
        """The wait."""
        self.resync(now)
        moment_available = self.next_free_ticket
        stored_to_spend = min(required_permits, self.stored_permits)
        fresh_permits = required_permits - stored_to_spend
        self.next_free_ticket += type(self).whole(
            fresh_permits * self.stable_interval)
        self.stored_permits -= stored_to_spend
        return max(math.ceil(moment_available) - now, 0)

    def try_acquire(self, required_permits, timeout, now):
        """The wait, or None."""
        if self.next_free_ticket - timeout > now:
            return None
        return self.acquire(required_permits, now)


class Exact(Seed):
    """
    The description with fractions of microseconds and permits, which are
    carried. After a change of the rate there are no finer ones than the new
    rate has, microseconds / rate, and no finer permits than what comes in such
    a time, 10^-18: what is less than that is nobody's. A burst is a time, and
    what is over a smaller one is gone.
    """

    number = Fraction
    whole = Fraction

    def set_rate(self, rate, now):
        super().set_rate(rate, now)
        self.next_free_ticket = Fraction(
            math.ceil(self.next_free_ticket * rate), rate)
        self.stored_permits = Fraction(
            math.floor(self.stored_permits * 10**18), 10**18)

    def set_burst(self, burst_us):
        self.max_permits = Fraction(burst_us) / self.stable_interval
        self.burst_seconds = Fraction(burst_us, 10**6)
        self.stored_permits = min(self.stored_permits, self.max_permits)

    def unspent_since(self, now):
        """The one number that the state is: a moment, a fraction."""
        self.resync(now)
        return self.next_free_ticket - \
            self.stored_permits * self.stable_interval

    def wait(self, now):
        """Of who would come now."""
        return max(math.ceil(self.next_free_ticket) - now, 0)


class Bounds:
    """
    Where Guava's own one number can be, seen from the exact one, since.

    Guava cuts less than a microsecond off each cost, which lets it go that
    much earlier from then on: an acquire that took fresh permits counts one,
    until all is full, where both are the same again. Neither a changing rate
    nor storing and spending multiplies that, as both leave the number alone;
    doubles add their rounding, error, at each call that rounds at all. So

        since - cuts - error <= Guava's <= since + error
    """

    # Four roundings of half a unit in the last place each, and a doubling.
    ROUNDING = Fraction(1, 2**50)

    def __init__(self):
        self.cuts = 0
        self.error = Fraction(0)
        self.plain = True   # only whole intervals, and nothing stored, so far

    def rounds(self, model, permits):
        self.error += self.ROUNDING * (
            (permits + model.max_permits) * model.stable_interval)

    def before(self, model, now):
        """A call is about to be made."""
        model.resync(now)
        if model.stored_permits > 0:
            self.plain = False
        if model.stored_permits == model.max_permits:
            self.cuts = 0

    def acquire(self, model, permits):
        """Permits are about to be taken."""
        if model.stable_interval.denominator != 1:
            self.plain = False
        if not self.plain:
            self.cuts += permits > model.stored_permits
            self.rounds(model, permits)

    def set_rate(self, model, rate):
        if not self.plain or model.stable_interval.denominator != 1:
            # And ours goes up to the next microsecond / rate.
            self.rounds(model, 0)
            self.error += Fraction(1, rate)

    def holds(self, model, wait, now):
        since = model.unspent_since(now)
        if wait > 0:
            return -self.cuts - self.error <= now + wait - since <= self.error
        return since <= now + self.cuts + self.error

    def certain(self, model, timeout, now):
        """Do both answer a try alike?"""
        wait = model.next_free_ticket - now
        return timeout >= model.wait(now) or \
            timeout < wait - self.cuts - self.error


def replay(model, calls):
    """The answers of a Seed to a schedule; model: its class."""
    limiter = now = None
    answers = []
    for line in calls:
        word, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        if word == "limiter":
            now = numbers[2]
            limiter = model(*numbers)
        elif word == "idle":
            now += numbers[0]
        elif word == "rate":
            limiter.set_rate(numbers[0], now)
            if model is Exact:
                limiter.set_burst(numbers[1])
        elif word == "acquire":
            answers.append(f"granted {limiter.acquire(numbers[0], now)}")
        else:
            refusal = f"refused {math.ceil(limiter.next_free_ticket) - now}"
            wait = limiter.try_acquire(*numbers, now)
            answers.append(refusal if wait is None else f"granted {wait}")
    return answers


ROUND = [ONE // 1000, ONE // 10, ONE, 10 * ONE, 1000 * ONE, 200000 * ONE,
         10**6 * ONE]
AWKWARD = [ONE // 3, 123456789012000, 700000 * ONE, 999999999999999999,
           10**18 // 3, 7 * ONE, 333333 * ONE + 1, ONE // 1000 + 1]


class Scheduler:
    """Makes schedules: a limiter and calls at which it could go wrong."""

    def __init__(self, seed, for_guava=False):
        self.random = random.Random(seed)
        self.for_guava = for_guava

    def any_rate(self):
        rnd = self.random
        return rnd.choice([
            rnd.choice(ROUND), rnd.choice(AWKWARD),
            min(10**18, rnd.randrange(1, 1000) * 10**rnd.randrange(9, 16)),
            int(10**rnd.uniform(9, 18))])

    def any_burst(self):
        rnd = self.random
        return rnd.choice([10**6, 10**6, 1000, 3600 * 10**6,
                           int(10**rnd.uniform(3, math.log10(3.6e9)))])

    def permits(self, model):
        """One, few, about what is stored, or as many as a day gives."""
        rnd = self.random
        most = min(MAX_PERMITS, 1 + int(DAY_US / model.stable_interval))
        stored = int(model.stored_permits)
        wanted = rnd.choice([
            1, 1, rnd.randint(1, 20), rnd.randint(1, stored + 1),
            stored, stored + 1, int(10**rnd.uniform(0, 6))])
        return max(1, min(wanted, most))

    def idle(self, model, now):
        rnd = self.random
        wait = model.wait(now)
        burst = int(model.max_permits * model.stable_interval)
        return max(0, rnd.choice([
            0, 1, rnd.randint(0, 3), wait + rnd.randint(-1, 1), wait,
            int(model.stable_interval * rnd.randint(1, 9)),
            wait + rnd.randint(0, burst), wait + burst + rnd.randint(-2, 2),
            rnd.randint(0, wait + 2 * burst)]))

    def timeout(self, model, bounds, now):
        rnd = self.random
        wait = model.wait(now)
        timeout = max(0, rnd.choice([
            0, wait, wait - 1, wait + 1, rnd.randint(0, 2 * wait + 1)]))
        if self.for_guava and not bounds.certain(model, timeout, now):
            return wait
        return timeout

    def calls(self, count, rates=None):
        """rates: the first one, and those to change to; None: any."""
        rnd = self.random
        rate, *others = rates or [self.any_rate()]
        burst, now = self.any_burst(), rnd.randrange(10**rnd.randint(1, 15))
        calls = [f"limiter {rate} {burst} {now}"]
        model, bounds = Exact(rate, burst, now), Bounds()
        for _ in range(count):
            what = rnd.choice(["acquire"] * 4 + ["try", "idle"] * 2 +
                              ["rate"] * (rates is None or bool(others)))
            if what == "idle":
                idle = self.idle(model, now)
                now += idle
                calls.append(f"idle {idle}")
            elif what == "rate":
                rate = rnd.choice(others) if others else self.any_rate()
                if not self.for_guava and rnd.random() < 0.4:
                    burst = self.any_burst()
                bounds.before(model, now)
                bounds.set_rate(model, rate)
                model.set_rate(rate, now)
                model.set_burst(burst)
                calls.append(f"rate {rate} {burst}")
            else:
                bounds.before(model, now)
                permits = self.permits(model)
                timeout = self.timeout(model, bounds, now)
                calls.append(f"acquire {permits}" if what == "acquire" else
                             f"try {permits} {timeout}")
                if what == "acquire" or timeout >= model.wait(now):
                    bounds.acquire(model, permits)
                    model.acquire(permits, now)
        return calls
