package io.fencelock.kotlin

import java.lang.ref.Cleaner

/** Tells when nobody can reach an object any more. */
internal val collected: Cleaner = Cleaner.create()
