package io.fencelock.kotlin

import java.nio.file.Files
import java.util.UUID
import java.util.stream.Stream
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield

internal val BOUND = 30.seconds

/**
 * The URLs of the stores that the tests run on: `memory` and `sqlite`, `redis` with a server of our own, or the
 * URL of any other. The property `fencelock.test.stores` lists them.
 */
internal object Stores {
    @JvmStatic
    fun all(): Stream<String> =
        System.getProperty("fencelock.test.stores", "memory,sqlite,redis").split(",").stream().map(::named)

    fun memory(): String = "memory:${UUID.randomUUID()}"

    private fun named(name: String): String =
        when (name.trim()) {
            "memory" -> memory()
            "sqlite" -> "sqlite:${Files.createTempDirectory("fl-sqlite").resolve("locks.db")}"
            "redis" -> RedisServer.shared.url
            else -> name.trim()
        }
}

/** A name that no other test uses: some share a server. */
internal fun fresh(): String = "kotlin/${UUID.randomUUID()}"

/** A test with a client of the store, on several threads. */
internal fun withClient(url: String, test: suspend CoroutineScope.(Client) -> Unit): Unit =
    runBlocking(Dispatchers.Default) {
        withTimeout(BOUND * 4) { Client.connect(url).use { test(it) } }
    }

/** Waits for a condition. */
internal suspend fun eventually(what: String, condition: suspend () -> Boolean) {
    val end = System.nanoTime() + BOUND.inWholeNanoseconds
    while (!condition()) {
        check(System.nanoTime() < end) { "in 30 s this did not come true: $what" }
        yield()
        delay(1)
    }
}

internal fun until(what: String, condition: () -> Boolean) = runBlocking { eventually(what) { condition() } }

internal suspend fun eventuallyWaiting(client: Client, count: Int) =
    eventually("$count waiters") { waiting(client) == count }

/** How many acquires wait in a client. */
internal fun waiting(client: Client): Int =
    client.metrics().lines().first { it.startsWith("fencelock_waiting ") }.substringAfter(' ').toDouble().toInt()

/** How many acquires were granted in a client. */
internal fun grants(client: Client): Long =
    client.metrics().lines().filter { it.startsWith("fencelock_grants_total") }.sumOf {
        it.substringAfterLast(' ').toDouble().toLong()
    }

/** Nobody holds the lock and nobody waits for it, by the store's word. */
internal suspend fun eventuallyEmpty(client: Client, name: String) =
    eventually("nothing is left of $name") {
        val info = client.inspect(name)
        info == null || (info.holds.isEmpty() && info.waiters.isEmpty())
    }

/** The exception that the block throws. */
internal suspend inline fun <reified E : Throwable> thrown(block: suspend () -> Unit): E {
    try {
        block()
    } catch (thrown: Throwable) {
        if (thrown is E) return thrown
        throw AssertionError("expected ${E::class.simpleName}, but this was thrown", thrown)
    }
    throw AssertionError("expected ${E::class.simpleName}, but nothing was thrown")
}
