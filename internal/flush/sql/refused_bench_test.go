package sql_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/row"
)

// BenchmarkRefused writes batches in which some rows are refused. clean/s is the speed without refused rows.
func BenchmarkRefused(b *testing.B) {
	const size = 5000
	for _, kind := range kinds {
		for _, refusal := range refusals {
			for _, share := range []int{10_000, 100, 10} {
				if share != 100 && refusal.name != "check" {
					continue
				}
				b.Run(fmt.Sprintf("%s/%s/1 in %d", kind.name, refusal.name, share), func(b *testing.B) {
					db := &bench{Database: kind.make(b), t: b}
					refusalTable(db)
					s := db.benchStore(b)
					if err := s.TakeOver(b.Context(), fence(1)); err != nil {
						b.Fatal(err)
					}
					p := plan(b, s, "guests", []string{"id"})
					p.Columns = p.Columns[:5]
					rows := func(from int, refused bool) []row.Row {
						var out []row.Row
						for id := from; id < from+size; id++ {
							values := []any{id, "a name", 5, 1, fmt.Sprint("mail", id)}
							if refused && (id*7919+id/share)%share == 0 {
								values = refusal.row(id)
							}
							out = append(out, rowOf(values...))
						}
						return out
					}
					var took [2][]time.Duration
					var used [2]time.Duration
					dead := 0
					for n := 0; b.Loop(); n++ {
						for i, refused := range []bool{false, true} {
							batch := batch(fmt.Sprint("b", n, i), 0, rows(n%10*size, refused)...)
							cpu := cpuOfTree()
							began := time.Now()
							out, err := s.Apply(b.Context(), fence(1), p, batch)
							if err != nil {
								b.Fatal(err)
							}
							took[i] = append(took[i], time.Since(began))
							used[i] += cpuOfTree() - cpu
							dead += len(out.Dead)
						}
					}
					median := func(d []time.Duration) float64 { slices.Sort(d); return d[len(d)/2].Seconds() }
					b.ReportMetric(size/median(took[0]), "clean/s")
					b.ReportMetric(size/median(took[1]), "rows/s")
					b.ReportMetric(used[0].Seconds()*1000/float64(b.N), "clean-cpu-ms")
					b.ReportMetric(used[1].Seconds()*1000/float64(b.N), "cpu-ms")
					b.ReportMetric(used[0].Seconds()/used[1].Seconds(), "cpu-ratio")
					b.ReportMetric(median(took[0])/median(took[1]), "ratio")
					b.ReportMetric(float64(dead)/float64(b.N), "dead/batch")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// cpuOfTree returns the CPU time of this process and of the processes that it has started.
func cpuOfTree() (sum time.Duration) {
	mine := map[string]bool{strconv.Itoa(os.Getpid()): true}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	parents := map[string]string{}
	for _, name := range stats {
		b, _ := os.ReadFile(name)
		if f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])); len(f) > 1 {
			parents[filepath.Base(filepath.Dir(name))] = f[1]
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if mine[parent] && !mine[pid] {
				mine[pid], grown = true, true
			}
		}
	}
	for pid := range mine {
		threads, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
		for _, name := range threads {
			b, _ := os.ReadFile(name)
			n, _, _ := strings.Cut(string(b), " ")
			ns, _ := strconv.ParseInt(n, 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}
