package redisledger

import (
	"encoding/json"
	"slices"
	"strings"
)

// idleEntry reads the entry that idle runs may still join.
func idleEntry(text string) (e stored, ok bool) {
	var list []string
	if json.Unmarshal([]byte(text), &list) != nil || len(list)%2 != 0 {
		return e, false
	}
	e.fields = make(map[string]string, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		e.fields[list[i]] = list[i+1]
	}
	e.id = e.fields["at"] + "-999999" // after all that were added in that millisecond
	return e, e.fields["id"] != ""
}

// withIdle puts it where it belongs among those of the stream: before them, unless an older
// version of baton has added some since.
func withIdle(all []stored, idle stored) []stored {
	for _, e := range all {
		if e.fields["id"] == idle.fields["id"] {
			return all // it was added while they were read
		}
	}
	at := slices.IndexFunc(all, func(e stored) bool { return older(e.id, idle.id) })
	if at < 0 {
		at = len(all)
	}
	return slices.Insert(all, at, idle)
}

// older compares ids of entries.
func older(id, than string) bool {
	a, b := strings.SplitN(id, "-", 2), strings.SplitN(than, "-", 2)
	if intField(a[0]) != intField(b[0]) {
		return intField(a[0]) < intField(b[0])
	}
	return len(b) > 1 && (len(a) < 2 || intField(a[1]) < intField(b[1]))
}
