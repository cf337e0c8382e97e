package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// counterVec contains the counters of one metric, like a [prometheus.CounterVec]. It stores one number for each counter, whereas a
// CounterVec needs more than half a kilobyte. This matters because a job has 27 counters and a lock has ten, and nearly all of them stay
// zero.
type counterVec struct {
	desc   *prometheus.Desc
	labels []string

	mu   sync.Mutex
	ways [][]string           // the combinations of the other labels' values, such as "won"
	rows map[string][]float64 // by the value of the first label: one number for each entry of ways, up to the last used entry
}

func newCounterVec(name, help string, labels ...string) *counterVec {
	return &counterVec{desc: prometheus.NewDesc(name, help, labels, nil), labels: labels, rows: map[string][]float64{}}
}

// add adds n to a counter. If n is 0, it only creates the counter. The argument of is the value of the first label, and way contains
// the values of the other labels.
func (v *counterVec) add(n float64, of string, way ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := slices.IndexFunc(v.ways, func(w []string) bool { return slices.Equal(w, way) })
	if at < 0 {
		if len(way) != len(v.labels)-1 {
			panic(fmt.Sprintf("%v has the labels %q, and not %d", v.desc, v.labels, len(way)+1))
		}
		at = len(v.ways)
		v.ways = append(v.ways, slices.Clone(way))
	}
	row := v.rows[of]
	for len(row) <= at {
		row = append(row, 0)
	}
	row[at] += n
	v.rows[of] = row
}

// forget removes the counters whose first label has the given value.
func (v *counterVec) forget(of string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.rows, of)
}

// Describe implements [prometheus.Collector].
func (v *counterVec) Describe(ch chan<- *prometheus.Desc) { ch <- v.desc }

// Collect implements [prometheus.Collector].
func (v *counterVec) Collect(ch chan<- prometheus.Metric) {
	for _, c := range v.all() { // without the lock, because ch may be slow and add must not wait for it
		ch <- c
	}
}

// all returns the counters with their current values.
func (v *counterVec) all() (all []counted) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ways := make([][]*dto.LabelPair, len(v.ways))
	for i, way := range v.ways {
		for j, value := range way {
			ways[i] = append(ways[i], &dto.LabelPair{Name: &v.labels[j+1], Value: &value})
		}
	}
	for of, row := range v.rows {
		first := &dto.LabelPair{Name: &v.labels[0], Value: &of}
		for i, value := range row {
			labels := append([]*dto.LabelPair{first}, ways[i]...)
			slices.SortFunc(labels, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
			all = append(all, counted{v.desc, labels, value})
		}
	}
	return all
}

// counted is one counter. It implements [prometheus.Metric].
type counted struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements [prometheus.Metric].
func (c counted) Desc() *prometheus.Desc { return c.desc }

// Write implements [prometheus.Metric].
func (c counted) Write(to *dto.Metric) error {
	to.Label, to.Counter = c.labels, &dto.Counter{Value: &c.value}
	return nil
}
