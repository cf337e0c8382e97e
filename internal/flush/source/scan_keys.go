package source

import (
	"context"

	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn"
)

// keyScan is one pass over the keys of one server, in batches. Some servers do not filter by type; then keys of other types are found when
// their values are read.
type keyScan struct {
	redisconn.KeyScan
	scan  *Scan
	calls *int // the number of further calls that are allowed; nil: no limit
	split []string
}

// keys begins a pass over the keys of one server.
func (s *Scan) keys() keyScan {
	return keyScan{scan: s, KeyScan: redisconn.KeyScan{
		Cursor: "0", Match: redisconn.Glob(s.pattern.Literals()...), Type: scanTypes[s.value], Pace: redisconn.NewNamePace(),
	}}
}

// next adds keys to ids. It stops when ids has as many keys as the argument most allows. It also stops when the memory budget is used up,
// or the pass is over (cursor "0").
func (k *keyScan) next(ctx context.Context, c redisconn.Conn, ids *idlist.List, budget, most int) error {
	for !ids.Full(budget) && ids.Len() < most && (k.calls == nil || *k.calls > 0) {
		if k.calls != nil {
			*k.calls--
		}
		if err := k.Next(ctx, c, func(key string) { k.add(key, ids) }); err != nil {
			return err
		}
		if k.Cursor == "0" {
			break
		}
	}
	return nil
}

// add adds the id of a key if the key matches the pattern.
func (k *keyScan) add(key string, ids *idlist.List) {
	var ok bool
	if k.split, ok = k.scan.pattern.Match(key, k.split[:0]); !ok {
		return
	}
	if len(k.split) == 1 { // so that numbers are sorted as numbers
		key = k.split[0]
	}
	ids.AddText(key)
}
