package chaos

import (
	"fmt"
	"slices"
	"time"
)

// tick is the resolution of times in the election's history, because its IDs are cut to milliseconds.
const tick = time.Millisecond

// overlaps finds answers in which a node said that it leads, although another node led according to the election's history. If a question
// was asked after another node had won, and was answered before the answering node won again, the answer must not be "yes".
func overlaps(answers []answer, events []event) []string {
	wins := won(events)
	var wrong []string
	for _, a := range answers {
		// The last that had certainly been won when the question was asked, and all
		// that may have been won until it was answered.
		lo, _ := slices.BinarySearchFunc(wins, a.sent, func(e event, at time.Time) int {
			if e.at.Add(tick).After(at) {
				return 1
			}
			return -1
		})
		honest := false
		for _, w := range wins[max(lo-1, 0):] {
			if w.at.After(a.got) {
				break
			}
			honest = honest || w.node == a.node
		}
		if !honest {
			other := "nobody"
			if lo > 0 {
				other = fmt.Sprintf("%s (epoch %d, won at %s)", wins[lo-1].node, wins[lo-1].epoch, wins[lo-1].at.UTC().Format(logTime))
			}
			wrong = append(wrong, fmt.Sprintf("%s said that it leads, asked at %s and answered at %s, when %s did", a.node,
				a.sent.UTC().Format(logTime), a.got.UTC().Format(logTime), other))
		}
	}
	return wrong
}

const logTime = "15:04:05.000"

func won(events []event) []event {
	return slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.name != "won" })
}

// rising checks that every term has a higher epoch than all earlier terms.
func rising(events []event) []string {
	var wrong []string
	last := event{epoch: -1}
	for _, e := range won(events) {
		if e.epoch <= last.epoch {
			wrong = append(wrong, fmt.Sprintf("%s won epoch %d after %s had won epoch %d", e.node, e.epoch, last.node, last.epoch))
		}
		last = e
	}
	return wrong
}

// fenced checks the takeovers of every job, in order: epochs rise, and each epoch belongs to a term of the node that took over.
func fenced(takeovers [][]string, events []event) []string {
	terms := map[string]string{} // epoch -> node
	for _, e := range won(events) {
		terms[fmt.Sprint(e.epoch)] = e.node
	}
	var wrong []string
	last := map[string]int64{}
	for _, f := range takeovers {
		job, epoch, node := f[0], f[1], f[2]
		if n := number(epoch); n <= last[job] {
			wrong = append(wrong, fmt.Sprintf("the fence of %s went from epoch %d to %s of %s", job, last[job], epoch, node))
		}
		last[job] = number(epoch)
		if terms[epoch] != node {
			wrong = append(wrong, fmt.Sprintf("%s took the fence of %s under epoch %s, which %q has won", node, job, epoch, terms[epoch]))
		}
	}
	return wrong
}

// once checks that no slot of a job was started twice.
func once(runs []jobRun) []string {
	type key struct {
		job  string
		slot int64
	}
	first := map[key]jobRun{}
	var wrong []string
	for _, r := range runs {
		k := key{r.job, r.slot}
		if f, twice := first[k]; twice {
			wrong = append(wrong, fmt.Sprintf("slot %s of %s was started by %s (%s, epoch %d) and by %s (%s, epoch %d)",
				time.UnixMilli(r.slot).UTC().Format(logTime), r.job, f.id, f.node, f.epoch, r.id, r.node, r.epoch))
		}
		first[k] = r
	}
	return wrong
}
