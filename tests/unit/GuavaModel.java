/*
 * Guava's own RateLimiter (SmoothBursty) on a clock of its own: the same calls
 * on stdin and the same answers as tests/unit/ratelimiter_probe.c, but that a
 * refusal has no wait. In Guava's package, where its clock can be replaced.
 */
package com.google.common.util.concurrent;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

final class GuavaModel {
	/** Time goes on when it is told to: who sleeps, sleeps elsewhere. */
	private static final class Clock extends RateLimiter.SleepingStopwatch {
		long now;
		long slept;

		@Override
		protected long readMicros() {
			return now;
		}

		@Override
		protected void sleepMicrosUninterruptibly(long micros) {
			slept = micros;
		}
	}

	private static Clock clock;
	private static RateLimiter limiter;

	private static double perSecond(String rate) {
		return Long.parseLong(rate) / 1e12;
	}

	private static String granted() {
		return "granted " + clock.slept + "\n";
	}

	/** As RateLimiter.create() does, with another burst and another clock. */
	private static void create(String rate, String burst, String now) {
		clock = new Clock();
		clock.now = Long.parseLong(now);
		limiter = new SmoothRateLimiter.SmoothBursty(
				clock, Long.parseLong(burst) / 1e6);
		limiter.setRate(perSecond(rate));
	}

	private static String call(String[] word) {
		switch (word[0]) {
		case "limiter":
			create(word[1], word[2], word[3]);
			return "";
		case "idle":
			clock.now += Long.parseLong(word[1]);
			return "";
		case "acquire":
			limiter.acquire(Integer.parseInt(word[1]));
			return granted();
		case "try":
			return limiter.tryAcquire(Integer.parseInt(word[1]),
					Long.parseLong(word[2]), TimeUnit.MICROSECONDS)
					? granted() : "refused\n";
		case "rate":
			limiter.setRate(perSecond(word[1]));
			return "";
		default:
			throw new IllegalArgumentException(word[0]);
		}
	}

	public static void main(String[] args) throws IOException {
		BufferedReader in =
				new BufferedReader(new InputStreamReader(System.in));
		StringBuilder out = new StringBuilder();

		for (String line; (line = in.readLine()) != null;)
			out.append(call(line.split(" ")));
		System.out.print(out);
	}
}
