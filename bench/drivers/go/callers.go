package main

import (
	"slices"
	"sync"
	"time"
)

// A tally is what one caller has done.
type tally struct {
	count   int
	longest time.Duration
	// How long each pair took.
	pairs []time.Duration
}

// Work is what one caller does from the common beginning on.
type work func(began time.Time) tally

// together prepares callers one after the other, lets them begin at once, and waits for all.
func together(callers int, prepare func(caller int) work) ([]tally, time.Duration) {
	var began time.Time
	var ready, done sync.WaitGroup
	tallies := make([]tally, callers)
	begin := make(chan struct{})
	ready.Add(callers)
	for i := range tallies {
		work := prepare(i)
		done.Go(func() {
			ready.Done()
			<-begin
			tallies[i] = work(began)
		})
	}
	ready.Wait()
	began = time.Now()
	close(begin)
	done.Wait()
	return tallies, time.Since(began)
}

// cycle acquires and releases a lock until the time is over.
func cycle(l lock, span time.Duration) work {
	return func(began time.Time) (t tally) {
		for asked := time.Now(); asked.Sub(began) < span; {
			l.acquire()
			t.longest = max(t.longest, time.Since(asked))
			l.release()
			t.count++
			next := time.Now()
			t.pairs = append(t.pairs, next.Sub(asked))
			asked = next
		}
		return t
	}
}

func sum(tallies []tally) (count int) {
	for _, t := range tallies {
		count += t.count
	}
	return count
}

func median(pairs []time.Duration) time.Duration {
	if len(pairs) == 0 {
		return 0
	}
	slices.Sort(pairs)
	return pairs[len(pairs)/2]
}

func extremes(tallies []tally) (least, most int, longest time.Duration) {
	byCount := func(a, b tally) int { return a.count - b.count }
	byWait := func(a, b tally) int { return int(a.longest - b.longest) }
	return slices.MinFunc(tallies, byCount).count,
		slices.MaxFunc(tallies, byCount).count,
		slices.MaxFunc(tallies, byWait).longest
}
