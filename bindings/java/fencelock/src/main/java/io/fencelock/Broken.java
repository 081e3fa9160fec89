package io.fencelock;

import java.util.OptionalLong;

/**
 * What became of a break.
 *
 * @param ended how many holds were ended; 0 when what was named holds nothing
 * @param changedHands the later token under which somebody else holds the lock; nothing was ended then
 */
public record Broken(long ended, OptionalLong changedHands) {
    /** The token of a break, which is never below zero. */
    static long token(long token) {
        if (token < 0) {
            throw new InvalidArgumentException("a token is never below zero: " + token);
        }
        return token;
    }

    /** Of the native side's number: how many were ended, or below zero the later token. */
    static Broken of(long number) {
        return number < 0
                ? new Broken(0, OptionalLong.of(-number))
                : new Broken(number, OptionalLong.empty());
    }
}
