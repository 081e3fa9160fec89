package io.fencelock.examples

import io.fencelock.kotlin.Abandoned
import io.fencelock.kotlin.Client
import io.fencelock.kotlin.FencelockException
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking

/** The first lock: on the store of the URL that is given, or in this process' memory. */
fun main(args: Array<String>): Unit = runBlocking {
    Client.connect(args.firstOrNull() ?: "memory:").use { client ->
        val lock = client.lock("stock/coupon-7")
        try {
            lock.withLock(timeout = 5.seconds) { hold ->
                if (hold.previousAbandoned == Abandoned.YES) println("the last holder was lost at its work")
                println("one sold, under token ${hold.token}")
            }
        } catch (busy: FencelockException.TimedOut) {
            println("sold out of patience: ${busy.message}")
        }
    }
}
