package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// settle compares the suspects again until each of them is decided: it is no difference, a lasting difference, or a record that changes at
// every reading.
func (r *comparison) settle(ctx context.Context) error {
	all, before := len(r.suspects), r.found().Differences()
	for range tries {
		if len(r.suspects) == 0 {
			break
		}
		if err := r.flushed(ctx, time.Now()); err != nil {
			return err
		}
		texts := slices.Collect(maps.Keys(r.suspects))
		slices.Sort(texts)
		for some := range slices.Chunk(texts, chunk) {
			if err := r.lookAgain(ctx, some); err != nil {
				return err
			}
		}
	}
	r.judge(all, r.found().Differences()-before)
	r.found().Moving += int64(len(r.suspects))
	clear(r.suspects)
	return nil
}

// judge decides whether further differences count without a second comparison.
func (r *comparison) judge(suspects int, lasted int64) {
	if lasted < int64(suspects) {
		r.surely = false
	} else if suspects >= systematic && !r.unmoved {
		r.surely = true
		r.Result.note("so many rows differ that not all were compared again after a run of the job")
	}
}

// lookAgain compares some suspects again. It decides a suspect only if the record is the same as at the first comparison, and does not
// change while the row is read.
func (r *comparison) lookAgain(ctx context.Context, texts []string) error {
	records, err := r.reread(ctx, texts)
	if err != nil {
		return err
	}
	differs := map[string]finding{}
	if err := r.compare(ctx, slices.Collect(maps.Values(records)), func(f finding) { differs[f.text] = f }); err != nil {
		return err
	}
	var still []string
	for _, text := range texts {
		if _, differ := differs[text]; differ {
			still = append(still, text)
		} else { // also if the record is gone, or has another key now and therefore another row
			delete(r.suspects, text)
		}
	}
	after, err := r.reread(ctx, still)
	if err != nil {
		return err
	}
	var lasting []finding
	for _, text := range still {
		f, last := differs[text], after[text]
		if r.suspects[text].sum == f.sum && sumOf(&last) == f.sum {
			lasting = append(lasting, f)
		}
		r.suspects[text] = f.suspect
	}
	if err := r.decide(ctx, lasting); err != nil {
		return err
	}
	return r.pace.rest(ctx, len(texts)+len(still))
}

// decide counts suspects as differences. In a repair it also marks their keys.
func (r *comparison) decide(ctx context.Context, lasting []finding) error {
	var keys []string
	for _, f := range lasting {
		e := Example{Kind: f.kind, Key: shown(f.key, true), Member: f.member, Columns: f.columns}
		if f.why != nil {
			e.Why = f.why.Error()
		} else {
			keys = append(keys, f.key)
		}
		r.count(e)
		delete(r.suspects, f.text)
	}
	if err := r.checkShown(); err != nil {
		return err
	}
	return r.mark(ctx, keys)
}

// count counts a difference. It keeps the difference as an example if there are few examples of this kind.
func (r *comparison) count(e Example) {
	found := r.found()
	n := found.counter(e.Kind)
	if *n++; *n <= int64(r.options.Examples) && !r.Marking {
		found.Examples = append(found.Examples, e)
	}
}

// reread reads the records of suspects again. It returns the records by the texts of their rows' keys.
func (r *comparison) reread(ctx context.Context, texts []string) (map[string]row.Record, error) {
	wanted := make(map[string]bool, len(texts))
	var keys []string
	for _, text := range texts {
		wanted[text] = true
		keys = append(keys, r.suspects[text].key)
	}
	slices.Sort(keys)
	records := make(map[string]row.Record, len(texts))
	err := r.source.Read(ctx, slices.Compact(keys), func(page []row.Record) error {
		for _, record := range page {
			if record.Gone {
				continue
			}
			if _, text, _ := r.convert(&record); wanted[text] {
				record.Inputs = slices.Clone(record.Inputs) // the memory of the page is reused
				records[text] = record
			}
		}
		return nil
	})
	return records, err
}

// rows searches in the source for the records of all rows of the table.
func (r *comparison) rows(ctx context.Context) error {
	var missing []row.Record // records that the first search did not find
	for behind := r.Behind; ; {
		texts, err := r.keyRows(ctx, behind)
		if err != nil {
			return err
		}
		records := r.chosenRows(texts)
		r.found().Rows += int64(len(records))
		some, err := r.source.StillMissing(ctx, records)
		if err != nil {
			return err
		}
		missing = append(missing, some...)
		if len(texts) > 0 {
			behind = texts[len(texts)-1]
		}
		if len(texts) == 0 || len(missing) >= mostSuspects/2 || r.waited(len(missing)) {
			if err := r.searchAgain(ctx, missing); err != nil {
				return err
			}
			missing = nil
		}
		if len(missing) == 0 {
			r.Behind = behind
			r.keep()
		}
		if len(texts) == 0 {
			return nil
		}
		if err := r.progress(0.5 + 0.5*float64(r.found().Rows)/float64(max(1, r.found().Records))); err != nil {
			return err
		}
		if err := r.pace.rest(ctx, len(texts)); err != nil {
			return err
		}
	}
}

// keyRows returns the keys of the next rows of the table.
func (r *comparison) keyRows(ctx context.Context, texts []string) ([][]string, error) {
	var behind []row.Value
	if texts != nil {
		var err error
		if behind, err = r.vanished.Key(texts); err != nil {
			return nil, fmt.Errorf("table %q: %w", r.name, err)
		}
	}
	found, err := r.table.KeyRows(ctx, r.vanished.List(), flush.KeyRange{Behind: behind, Limit: tableRows})
	if err != nil {
		return nil, fmt.Errorf("list the keys of table %q: %w", r.name, err)
	}
	return found, nil
}

// chosenRows returns the records of the rows in the sample. The records have the inputs of the table's key.
func (r *comparison) chosenRows(texts [][]string) []row.Record {
	var records []row.Record
	for i := range texts {
		if !r.vanished.Live(texts[i]) {
			continue // the row has vanished already: it has NULL in all columns but its key
		}
		record := r.vanished.Record(texts[i])
		record.Key = r.source.KeyOf(&record)
		if r.chosen(record.Key) {
			records = append(records, record)
		}
	}
	return records
}

// searchAgain searches again for missing records, after a run of the flush.
func (r *comparison) searchAgain(ctx context.Context, missing []row.Record) error {
	if len(missing) == 0 {
		return nil
	}
	if err := r.flushed(ctx, time.Now()); err != nil {
		return err
	}
	all, before := len(missing), r.found().Extra
	for some := range slices.Chunk(missing, chunk) {
		still, err := r.source.StillMissing(ctx, some)
		if err == nil {
			err = r.extra(ctx, still)
		}
		if err == nil {
			err = r.pace.rest(ctx, len(some))
		}
		if err != nil {
			return err
		}
	}
	r.judge(all, r.found().Extra-before)
	return nil
}

// emptied reports whether a row counts as vanished because all of its columns except the key are NULL.
func (r *comparison) emptied(cells []row.Raw) bool {
	key := r.m.Plan().Key
	for i, cell := range cells {
		if cell.OK && !slices.Contains(key, i) {
			return false
		}
	}
	return r.empties
}

// extra counts the rows that still exist although they have no record.
func (r *comparison) extra(ctx context.Context, missing []row.Record) error {
	var keys [][]row.Value
	redis := map[string]string{} // the keys in Redis, by the texts of the rows' keys
	for i := range missing {
		made, text, err := r.convert(&missing[i]) // a missing record has only the key
		if err != nil {
			return fmt.Errorf("table %q: %w", r.name, err)
		}
		keys = append(keys, r.keyOf(&made))
		redis[text] = missing[i].Key
	}
	have, err := r.read(ctx, keys, func(text string) bool { _, wanted := redis[text]; return wanted })
	if err != nil {
		return err
	}
	// Since the last search a record may have been written again and flushed at once. In this case the row is no difference.
	missing, err = r.source.StillMissing(ctx, slices.DeleteFunc(missing, func(record row.Record) bool {
		_, text, _ := r.convert(&record)
		return have[text] == nil || r.emptied(have[text])
	}))
	var marks []string
	for _, record := range missing {
		r.count(Example{Kind: Extra, Key: shown(record.Key, true), Member: r.member(&record)})
		marks = append(marks, record.Key)
	}
	if err == nil {
		err = r.checkShown()
	}
	if err != nil {
		return err
	}
	return r.mark(ctx, marks)
}
