package io.fencelock;

/** Interrupts a thread when its hold is lost, but not once the hold is being released. */
final class Interrupter implements Notice {
    private final Thread thread = Thread.currentThread();
    private boolean over;

    /** Begins to watch for the calling thread. */
    static Interrupter watch(long hold) {
        Interrupter interrupter = new Interrupter();
        try {
            Native.onLost(hold, interrupter);
        } catch (FencelockException e) {
            Native.freeHold(hold);
            throw e;
        }
        return interrupter;
    }

    @Override
    public synchronized void happened(int reason) {
        if (!over) {
            thread.interrupt();
        }
    }

    /** After this the thread is not interrupted any more. */
    synchronized void end() {
        over = true;
    }
}
