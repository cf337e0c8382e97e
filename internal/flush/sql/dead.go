package sql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"baton/internal/flush/row"
)

// maxError limits the error text of a dead letter, in bytes.
const maxError = 4000

// letter returns the dead letter of a row that the database refused. p is the plan that wrote the row.
func (a *application) letter(p *row.Plan, refused row.Row, cause error) row.DeadLetter {
	why := "the database refused the row: " + a.store.dialect.Explain(cause)
	for i, c := range p.Columns {
		if v := refused.Values[i]; c.Values != nil && !v.IsNull() && !v.IsAbsent() && !c.Lists(v) {
			why += fmt.Sprintf("; column %q takes %s", c.Name, c.Takes())
		}
		for _, name := range slices.Sorted(maps.Keys(c.Checks)) {
			if strings.Contains(why, `"`+name+`"`) {
				why += fmt.Sprintf("; column %q demands %s", c.Name, c.Checks[name])
			}
		}
	}
	return row.DeadLetter{Record: row.RecordJSON(a.plan.Inputs, refused.Record), Error: why}
}

// buryAll inserts the dead letters. If a record is too long for one statement of the database, the letter contains only the beginnings of
// the record's texts. In that case the whole record is stored in parts in another table.
func (a *application) buryAll(ctx context.Context, tx Session) error {
	if len(a.dead) == 0 {
		return nil
	}
	form := storable
	if tx.Narrow() {
		form = func(text string) string { return escaped(storable(text)) }
	}
	err := tx.Run(ctx, a.bury(form, false)...)
	if err != nil && a.store.dialect.Judge(err) == Refused {
		return tx.Run(ctx, a.bury(form, true)...) // if the connection has broken, this returns the error
	}
	return err
}

// bury returns the tasks that insert the dead letters. The id of a letter is a hash of the record and its position in the batch. So if a
// batch without a ledger entry is applied again, it finds its dead letters and does not add them twice.
func (a *application) bury(form func(text string) string, inParts bool) []Task {
	tasks := make([]Task, 0, len(a.dead))
	seen := make(map[string]int, len(a.dead))
	for _, letter := range a.dead {
		record := storable(letter.Record)
		// If a batch contains the same record twice, there are two dead letters.
		n := seen[record]
		seen[record]++
		id := deadID(a.fence.Job, a.batch.ID, a.batch.Part, n, record)
		record = form(record)
		if whole := record; inParts {
			if record = row.CutRecordJSON(whole, maxText); record != whole {
				for i, part := range parts(whole) {
					tasks = append(tasks, Task{Query: "dead_part_insert", Once: true, Args: []any{id, i, part}})
				}
			}
		}
		tasks = append(tasks, Task{Query: "dead_insert", Once: true, Args: []any{
			id, a.fence.Job, a.batch.ID, record, truncate(form(letter.Error)),
		}})
	}
	return tasks
}

// parts cuts a record into pieces that every database accepts in one statement. It never cuts within a character.
func parts(record string) []string {
	var all []string
	for len(record) > maxPart {
		end := maxPart
		for !utf8.RuneStart(record[end]) {
			end--
		}
		all, record = append(all, record[:end]), record[end:]
	}
	return append(all, record)
}

// maxPart is the maximum length of a part of a record, in bytes.
const maxPart = 16 << 10

// escaped replaces each character that the database's encoding lacks by the character's JSON escape.
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

// maxText is the maximum length, in bytes, of each text in a dead letter whose complete record is stored in parts in another table.
const maxText = 1024

func deadID(job, batch string, part, n int, record string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d %s", job, batch, part, n, record))
	return hex.EncodeToString(h[:16])
}

// storable replaces characters that no text column can hold, because otherwise the database would refuse the dead letter. RecordJSON never
// writes such characters, but an error that quotes a value may contain them.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func truncate(s string) string {
	if len(s) <= maxError {
		return s
	}
	return strings.ToValidUTF8(s[:maxError], "") + "…"
}
