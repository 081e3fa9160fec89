/** The driver of Kotlin's coroutines: says what `io.fencelock.kotlin` says. See ../README.md for the protocol. */
package io.fencelock.conformance

import io.fencelock.kotlin.Client
import io.fencelock.kotlin.FencelockException
import io.fencelock.kotlin.Hold
import io.fencelock.kotlin.Owner
import io.fencelock.kotlin.kind
import java.util.concurrent.ConcurrentHashMap
import kotlin.system.exitProcess
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch

private val clients = ConcurrentHashMap<String, Client>()
private val holds = ConcurrentHashMap<String, Hold>()
private val waits = ConcurrentHashMap<String, Job>()
private val scope = CoroutineScope(SupervisorJob() + Dispatchers.Default)

fun main() {
    for (line in generateSequence(::readLine)) {
        val (verb, tag) = line.split(' ')
        val words = line.split(' ').drop(2)
        if (verb == "leave") exitProcess(0)
        if (verb == "acquire" || verb == "attach") {
            val more = words.drop(2).joinToString(" ")
            say("asked", tag, "client=${words[0]} lock=${words[1]} $more")
            val wait = scope.launch { obey(verb, tag, words) }
            waits[tag] = wait
            wait.invokeOnCompletion { waits.remove(tag) }
        } else {
            scope.launch { obey(verb, tag, words) }
        }
    }
    Runtime.getRuntime().halt(0) // Whoever tells us what to do has gone.
}

private suspend fun obey(verb: String, tag: String, words: List<String>) {
    try {
        when (verb) {
            "open" -> {
                val client = Client.connect(words[0], shutdownGrace = 200.milliseconds)
                clients[tag] = client
                say("opened", tag, "id=${client.id} knows=modes,conversions,resize")
            }
            "acquire" -> acquire(tag) { begin(words) }
            "attach" -> acquire(tag) { clients.getValue(words[0]).attach(words[1]) }
            "cancel" -> waits[tag]?.cancel()
            "look" -> holds[tag]?.let { say("seen", tag, trust(it)) }
            "ticket" -> say("ticket", tag, "text=${holds.getValue(tag).ticket()}")
            "downgrade" -> {
                say("downgrade-asked", tag, trust(holds.getValue(tag)))
                convert(tag) { downgrade() }
            }
            "upgrade" -> convert(tag) { if (!tryUpgrade()) throw FencelockException.Contended("others read") }
            "release" -> {
                val hold = holds.remove(tag) ?: return
                say("release-asked", tag, trust(hold))
                hold.release()
                say("released", tag)
            }
            "drop" -> {
                say("drop-asked", tag, trust(holds.getValue(tag)))
                holds.remove(tag)
                say("dropped", tag)
                scope.launch { repeat(100) { System.gc(); delay(100.milliseconds) } }
            }
            "resize" -> {
                say("resize-asked", tag, "lock=${words[1]} of=${words[2]}")
                val of = words[2].toInt()
                val used = clients.getValue(words[0]).semaphore(words[1], of).resize(of)
                say("resized", tag, if (used) "used=yes" else "used=no")
            }
            "list" -> say("listed", tag, "count=${clients.getValue(words[0]).list(limit = words[1].toInt()).size}")
            "name" -> {
                clients.getValue(words[0]).lock(names.getValue(words[1]))
                say("named", tag)
            }
            "close" -> close(tag, words.firstOrNull()?.removePrefix("drain="))
        }
    } catch (error: FencelockException) {
        val event = others[verb] ?: "failed"
        say(event, tag, "kind=${error.kind.name.lowercase()} why=${error.message?.replace(' ', '_')}")
    } catch (_: CancellationException) {
        say("failed", tag, "kind=cancelled")
    }
}

private val others =
    mapOf("open" to "refused", "release" to "unreleased", "downgrade" to "unconverted", "upgrade" to "unconverted")

private suspend fun convert(tag: String, to: suspend Hold.() -> Unit) {
    val hold = holds.getValue(tag)
    hold.to()
    say("converted", tag, "token=${hold.token} mode=${hold.mode.name.lowercase()}")
}

private val names = mapOf("empty" to "", "nul" to "a\u0000b", "long" to "x".repeat(513), "half" to "half \uD83D")

private suspend fun close(tag: String, drain: String?) {
    val client = clients.getValue(tag)
    val all =
        when (drain) {
            null -> client.shutDown()
            "endless" -> client.drain(Duration.INFINITE)
            else -> client.drain(span(drain))
        }
    say("closed", tag, if (all) "all=yes" else "all=no")
}

private suspend fun begin(words: List<String>): Hold {
    val options = words.filter { '=' in it }.associate { it.substringBefore('=') to it.substringAfter('=') }
    val limit =
        when (val wait = options["wait"] ?: "forever") {
            "try" -> Duration.ZERO
            "forever" -> null
            "endless" -> Duration.INFINITE
            else -> span(wait)
        }
    val client = clients.getValue(words[0])
    val (owner, lease) = options["owner"]?.let(Owner::of) to options["lease"]?.let(::span)
    return when (val mode = options["mode"]) {
        null -> client.lock(words[1], owner, lease).acquire(limit)
        "shared" -> client.rwLock(words[1], owner, lease).reader.acquire(limit)
        else -> {
            val (count, of) = mode.removePrefix("permits:").split('/').map(String::toInt)
            val semaphore = client.semaphore(words[1], of, lease)
            (if ("adopt" in options) semaphore.adopting() else semaphore).acquire(count, limit)
        }
    }
}

private suspend fun acquire(tag: String, wait: suspend () -> Hold) {
    val hold = wait()
    holds[tag] = hold
    val abandoned = hold.previousAbandoned.name.lowercase()
    val grant = "lock=${hold.name} token=${hold.token} abandoned=$abandoned reentry=${hold.isReentry}"
    say("granted", tag, "$grant ${trust(hold)}")
    // Not the hold, which would be kept by who waits here.
    val lost = hold.lost
    scope.launch { say("lost", tag, "reason=${lost.await().name.lowercase()}") }
}

/** How far a hold is trusted, by a clock that was read before. */
private fun trust(hold: Hold): String {
    val now = System.nanoTime()
    return "until=${now + hold.remaining.inWholeNanoseconds} valid=${hold.isValid}"
}

private fun span(text: String): Duration = text.removeSuffix("ms").toLong().milliseconds

/** In one piece. */
@Synchronized
private fun say(event: String, tag: String, more: String = "") {
    println("${System.nanoTime()} ${System.currentTimeMillis()}000000 $event $tag $more")
}
