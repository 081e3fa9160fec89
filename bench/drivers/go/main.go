// The driver of the libraries in Go: see the README.md above.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: driver LIBRARY URL")
	}
	library := connect(os.Args[1], os.Args[2])
	fmt.Println("ready", library.version())
	d := driver{library, map[string]chan<- struct{}{}}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		d.obey(strings.Fields(orders.Text()))
	}
	// What still waits ends with the process.
}

type driver struct {
	*library
	holds map[string]chan<- struct{}
}

func (d driver) obey(order []string) {
	switch verb, words := order[0], order[1:]; verb {
	case "pairs":
		go d.pairs(words[0], words[1])
	case "keys":
		keys := make([]string, number(words[0]))
		for i := range keys {
			keys[i] = fmt.Sprintf("%s-%d", words[1], i)
		}
		go d.keys(keys, words[2])
	case "hot":
		go d.hot(number(words[0]), words[1], words[2])
	case "acquire":
		d.acquire(words[0], d.lock(words[1], lease(words[2])))
	case "release":
		close(d.holds[words[0]])
		delete(d.holds, words[0])
	case "wait":
		go d.wait(number(words[0]), words[1])
	case "sell":
		go d.sell(number(words[0]), words[1])
	default:
		// None of the libraries is re-entrant.
		fmt.Println("cannot")
	}
}

func (d driver) pairs(key, span string) {
	tallies, took := d.cycle([]string{key}, span)
	fmt.Println("did", sum(tallies), took.Nanoseconds(), median(tallies[0].pairs).Nanoseconds())
}

func (d driver) keys(keys []string, span string) {
	tallies, took := d.cycle(keys, span)
	fmt.Println("did", sum(tallies), took.Nanoseconds())
}

func (d driver) cycle(keys []string, span string) ([]tally, time.Duration) {
	return together(len(keys), func(i int) work {
		return cycle(d.lock(keys[i], usual), milliseconds(span))
	})
}

func (d driver) hot(callers int, key, span string) {
	tallies, took := together(callers, func(int) work {
		return cycle(d.lock(key, usual), milliseconds(span))
	})
	least, most, longest := extremes(tallies)
	fmt.Println("did", sum(tallies), took.Nanoseconds(), least, most, longest.Nanoseconds())
}

func (d driver) acquire(tag string, l lock) {
	end := make(chan struct{})
	d.holds[tag] = end
	fmt.Println("asked", tag)
	go func() {
		l.acquire()
		fmt.Println("granted", tag, now())
		<-end
		at := now()
		l.release()
		fmt.Println("released", tag, at)
	}()
}

func (d driver) wait(count int, key string) {
	begun := make(chan struct{})
	for range count {
		l := d.lock(key, usual)
		go func() {
			begun <- struct{}{}
			l.acquire()
		}()
	}
	for range count {
		<-begun
	}
	fmt.Println("waiting", count)
}

func (d driver) sell(callers int, key string) {
	tallies, took := together(callers, func(int) work {
		if d.bare {
			return d.take
		}
		l := d.lock(key, usual)
		return func(time.Time) (t tally) {
			for d.sellOne(l) {
				t.count++
			}
			return t
		}
	})
	fmt.Println("sold", sum(tallies), took.Nanoseconds())
}

func lease(word string) time.Duration {
	if word == "default" {
		return unsaid
	}
	return milliseconds(word)
}

func milliseconds(word string) time.Duration {
	return time.Duration(number(word)) * time.Millisecond
}

func number(word string) int {
	number, err := strconv.Atoi(word)
	must(err)
	return number
}

// now is CLOCK_MONOTONIC, which all processes share; time.Now has it too, but does not tell.
func now() int64 {
	const monotonic = 1
	var at syscall.Timespec
	_, _, failure := syscall.Syscall(
		syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0)
	if failure != 0 {
		log.Fatal(failure)
	}
	return at.Nano()
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
