package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"baton/internal/flush"
)

// maxError bounds the error text of a dead letter, in bytes.
const maxError = 4000

// letter makes a dead letter of a row that the database refused.
func (a *application) letter(row flush.Row, cause error) flush.DeadLetter {
	return flush.DeadLetter{
		Record: flush.RecordJSON(a.plan.Inputs, row.Record),
		Error:  "the database refused the row: " + a.store.explain(cause),
	}
}

// buryAll inserts the dead letters. A database may take no value as long as a
// record; then what is too long is cut, because a dead letter must be storable.
func (a *application) buryAll(ctx context.Context, tx session) error {
	if len(a.dead) == 0 {
		return nil
	}
	form := storable
	if narrow, ok := tx.(interface{ narrow() bool }); ok && narrow.narrow() {
		form = escaped
	}
	err := tx.run(ctx, a.bury(form)...)
	if err != nil && a.store.database.judge(err) == refused {
		return tx.run(ctx, a.bury(shortened)...) // the connection may have broken meanwhile
	}
	return err
}

// bury makes the tasks that insert the dead letters. Their ids are made from what
// they are and where they stand, so that a batch without a ledger entry, applied
// again, meets its own dead letters and does not add to them.
func (a *application) bury(form func(text string) string) []task {
	tasks := make([]task, len(a.dead))
	seen := make(map[string]int, len(a.dead))
	for i, letter := range a.dead {
		record := storable(letter.Record)
		// The same record twice in a batch is two dead letters.
		n := seen[record]
		seen[record]++
		tasks[i] = task{query: "dead_insert", once: true, args: []any{
			deadID(a.fence.Job, a.batch.ID, a.batch.Part, n, record),
			a.fence.Job, a.batch.ID, form(record), truncate(form(storable(letter.Error))),
		}}
	}
	return tasks
}

// escaped writes as JSON does what a database cannot hold that has an encoding of
// few characters.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// maxText is how much of a text a shortened record keeps, in bytes.
const maxText = 1024

// shortened is a record that any database can hold.
func shortened(record string) string { return flush.CutRecordJSON(record, maxText) }

func deadID(job, batch string, part, n int, record string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %s", job, batch, part, n, record))
	return hex.EncodeToString(h[:16])
}

// storable takes out what no text column can hold: a dead letter must not be
// refused itself. RecordJSON never writes such bytes; an error that quotes a
// value may.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func truncate(s string) string {
	if len(s) <= maxError {
		return s
	}
	return strings.ToValidUTF8(s[:maxError], "") + "…"
}
