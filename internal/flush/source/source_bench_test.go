package source

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"baton/internal/flush"
)

// Both benchmarks read a stage of a million records repeatedly. They measure the rows a second of Redis and of this package, without
// mapping and database. Run them with -benchtime 3x.
const benchRows = 1_000_000

func BenchmarkReadCounters(b *testing.B) {
	g := newRig(b)
	g.fillCounters("views:3", benchRows)
	benchRead(b, g, g.counters(CountersOptions{}))
}

func BenchmarkReadHashes(b *testing.B) {
	g := newRig(b)
	for lo := 0; lo < benchRows; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			err := g.Conn.Send("HSET", fmt.Sprintf("user:u%d", i), "name", "Somebody With A Name", "email", "somebody@example.org",
				"city", "Shenzhen", "score", i, "updated_at", 1795254021+i)
			if err != nil {
				b.Fatal(err)
			}
		}
		g.Do("")
	}
	g.fillIndex(false, benchRows)
	benchRead(b, g, g.hashes(IndexedOptions{Inputs: []string{"id", "name", "email", "city", "score", "updated_at"}}))
}

func benchRead(b *testing.B, g *rig, src flush.Source) {
	b.Helper()
	st := stageNow(b, src, "a")
	g.Do("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
	g.Do("SLOWLOG", "RESET")
	b.ReportAllocs()
	rows, start := 0, time.Now()
	before := cpuTime(b)
	for b.Loop() {
		err := src.Read(b.Context(), st, func(p flush.Page) error {
			rows += len(p.Records)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/time.Since(start).Seconds(), "rows/s")
	b.ReportMetric(float64(cpuTime(b)-before)/float64(rows), "cpu-ns/row")
	b.ReportMetric(float64(g.Num("SLOWLOG", "LEN")), "commands>10ms")
}

// cpuTime returns the processor time of this process, including its garbage collector and system calls. On a busy machine the elapsed time
// means little.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
