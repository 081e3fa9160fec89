package io.fencelock.examples.sale

import io.fencelock.kotlin.Client
import java.util.UUID
import java.util.concurrent.atomic.AtomicInteger
import kotlin.system.exitProcess
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking

/** The coupons that are left, in a place that knows nothing of locks, but refuses an old token. */
class Stock(@Volatile private var left: Int) {
    private val sales = AtomicInteger()
    @Volatile private var newest = 0L

    val sold: Int
        get() = sales.get()

    /** Sells one: looks, thinks, writes. False when nothing is left. */
    suspend fun sell(token: Long): Boolean {
        val seen = left
        if (seen == 0) return false
        check(token >= newest) { "token $token comes after $newest" }
        newest = token
        delay(1)
        left = seen - 1
        sales.incrementAndGet()
        return true
    }
}

/** Sells [coupons] by coroutines of several clients, with a lock or without; gives how many were sold. */
suspend fun sale(url: String, coupons: Int, locked: Boolean): Int {
    val stock = Stock(coupons)
    val name = "kotlin/sale/${UUID.randomUUID()}"
    coroutineScope {
        repeat(4) {
            launch {
                Client.connect(url).use { client ->
                    val lock = client.lock(name)
                    coroutineScope {
                        repeat(3) {
                            launch {
                                do {
                                    val more =
                                        if (locked) lock.withLock { stock.sell(it.token) } else stock.sell(0)
                                } while (more)
                            }
                        }
                    }
                }
            }
        }
    }
    return stock.sold
}

/** A flash sale: without a lock too many are sold; with one, as many as there are. */
fun main(args: Array<String>): Unit = runBlocking(Dispatchers.Default) {
    val url = args.firstOrNull() ?: "memory:sale"
    val coupons = 60
    val without = sale(url, coupons, locked = false)
    val with = sale(url, coupons, locked = true)
    println("without a lock $without of $coupons sold, with one $with")
    if (with != coupons) exitProcess(1)
}
