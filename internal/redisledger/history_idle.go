package redisledger

import (
	"encoding/json"
	"slices"
	"strings"
)

// idleEntry decodes the newest entry of runs that found nothing to do, as long as more such runs may join this entry.
func idleEntry(text string) (e stored, ok bool) {
	var list []string
	if json.Unmarshal([]byte(text), &list) != nil || len(list)%2 != 0 {
		return e, false
	}
	e.fields = make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		e.fields[list[i]] = list[i+1]
	}
	e.id = e.fields["at"] + "-999999" // after all entries that were added in that millisecond
	return e, e.fields["id"] != ""
}

// withIdle inserts the entry idle among the entries of the stream, which are sorted from the newest to the oldest. This entry is the
// newest, unless an older version of baton has added entries since.
func withIdle(all []stored, idle stored) []stored {
	for _, e := range all {
		if e.fields["id"] == idle.fields["id"] {
			return all // idle was added to the stream while the stream was read
		}
	}
	at := slices.IndexFunc(all, func(e stored) bool { return older(e.id, idle.id) })
	if at < 0 {
		at = len(all)
	}
	return slices.Insert(all, at, idle)
}

// older reports whether the entry with the first id is older than the entry with the second id.
func older(id, than string) bool {
	a, b := strings.SplitN(id, "-", 2), strings.SplitN(than, "-", 2)
	if intField(a[0]) != intField(b[0]) {
		return intField(a[0]) < intField(b[0])
	}
	return len(b) > 1 && (len(a) < 2 || intField(a[1]) < intField(b[1]))
}
