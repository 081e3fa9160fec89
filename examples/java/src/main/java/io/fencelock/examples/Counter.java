package io.fencelock.examples;

import io.fencelock.Hold;

/** Where one is sold at a time: read what is left, think, write. */
interface Counter {
    /**
     * The critical section.
     *
     * @param hold the lock, or null without one
     * @return false when nothing is left
     */
    boolean sell(Hold hold) throws Exception;
}
