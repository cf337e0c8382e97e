package source

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// PlainCountersOptions describe a counters job with a key for each counter, and an index of the changed ids. Producers add to a counter
// with INCRBY or INCRBYFLOAT. They write the counter and the index in one transaction, in any order:
//
//	MULTI
//	INCRBY hits:42 1
//	SADD changed:hits 42
//	EXEC
type PlainCountersOptions struct {
	Job     string
	Key     string // pattern of the counters' keys: "hits:<page>"
	Changed string // the index's live key: a SET, or a ZSET with any scores
	// Inputs are the captured name ("page") and "$value", in any order.
	Inputs []string
	// PartRows, MemoryBudget and Lanes have the same meaning as in CountersOptions.
	PartRows     int
	MemoryBudget int
	Lanes        int
}

// PlainCounters reads counters that each have their own key. It is a flush.Source.
//
// First the index of the changed ids is staged. Then scripts move the counts from their keys to a hash, a few hundred at a time. After an
// id has left the staged index, its count is in the hash, and later increments add the id to the live index. When the staged index is
// empty, the hash is sealed. From then on the hash is read as a stage of Counters.
type PlainCounters struct {
	Counters
	row      spec.RowKey
	partRows int
}

// gatherChunk is the maximum number of counters that one script moves, because Redis serves no other client while the script runs.
const gatherChunk = 250

var (
	countersStageScript   = loadScript("counters_stage", 4)
	countersGatherScript  = loadScript("counters_gather", -1) // the first argument is the number of keys
	countersSealScript    = loadScript("counters_seal", 3)
	countersBacklogScript = loadScript("counters_backlog", 3)
	countersDealScript    = loadScript("counters_deal", 1)
)

// NewPlainCounters checks the options and does not connect.
func NewPlainCounters(store *redisconn.Store, o PlainCountersOptions) (*PlainCounters, error) {
	row, err := spec.ParseRowKey(o.Key)
	if err != nil {
		return nil, err
	}
	for _, input := range o.Inputs {
		if input != row.Name && input != inputValue {
			return nil, fmt.Errorf("counters %q have no input %q: use %s and %s", o.Key, input, row.Name, inputValue)
		}
	}
	key, err := staging.New(store, o.Job, o.Changed, "set", "zset")
	if err != nil {
		return nil, err
	}
	if store.IsCluster() {
		if err := checkOneSlot(row, o.Changed); err != nil {
			return nil, err
		}
	}
	key.Parts = positive(o.PartRows, defaultPageRows) // the number of records in a part, because the stage is removed as a whole
	return &PlainCounters{
		Counters: Counters{
			Key: key, inputs: o.Inputs, field: row.Name,
			budget: positive(o.MemoryBudget, defaultMemoryBudget), lanes: positive(o.Lanes, 1),
		},
		row: row, partRows: key.Parts,
	}, nil
}

func checkOneSlot(row spec.RowKey, index string) error {
	if sameSlot(row, index) {
		return nil
	}
	return fmt.Errorf("in a Redis Cluster the counters %q must be in one slot with their index %q, so that they can be moved together: "+
		"give both the same {tag} before the <%s>, as in {hits}:<%s> and {hits}:changed", row.Key("<"+row.Name+">"), index, row.Name,
		row.Name)
}

// sameSlot reports whether every key of the pattern is in the same slot as the index, whatever text stands for the captured name.
func sameSlot(row spec.RowKey, index string) bool {
	_, tagged := redisconn.HashTag(row.Prefix)
	return tagged && redisconn.Slot(row.Prefix) == redisconn.Slot(index)
}

// Stage freezes the index, or finds the index that an earlier run froze. Then it gathers the counts in the stage, and seals the stage under
// newID. If an earlier run has sealed the stage, Stage gathers nothing more, and the stage keeps its id.
func (s *PlainCounters) Stage(ctx context.Context, newID, _ string) (st flush.Stage, ok bool, err error) {
	for {
		verdict, st, err := s.begin(ctx, newID)
		if err != nil || verdict == "nothing" {
			return st, false, err
		}
		if verdict == "sealed" {
			return st, true, nil
		}
		if err := s.gather(ctx, st); err != nil {
			return st, false, err
		}
		if ok, err := s.seal(ctx, &st, newID); ok || err != nil || !st.Resumed {
			return st, ok, err
		}
		// The stage of an earlier run had no counts, and was removed. Newer changes wait in the live index, so the loop makes a new stage.
	}
}

// gathering ends the id of a stage that is not sealed. Therefore no node of this version records that id in a ledger, and no run reads or
// discards such a stage: after a failover that loses the sealing, the stage is not the stage that was sealed.
const gathering = "-gathering"

// begin makes a stage, or finds the stage of an earlier run. The result verdict is "nothing", "gathering" or "sealed".
func (s *PlainCounters) begin(ctx context.Context, newID string) (verdict string, st flush.Stage, err error) {
	newID += gathering
	verdict, reply, err := s.Freeze(ctx, countersStageScript, s.Live, s.IndexKey(), s.StageKey(), s.MetaKey(), newID, s.Job)
	if err != nil {
		return "", st, err
	}
	switch verdict {
	case "gathering", "sealed":
		st, err = staging.StageOf(reply, newID)
	case "wrong_type":
		err = s.wrongPlainType(reply)
	case "orphan":
		err = fmt.Errorf("%w: the stage %q has no id in %q, so baton cannot know whether its counts are in the database. "+
			"If they are, delete the stage: UNLINK %s. If not, give the stage an id, and baton flushes it: HSET %s id NEW-UUID",
			staging.ErrBrokenStage, s.StageKey(), s.MetaKey(), s.StageKey(), s.MetaKey())
	case "lost":
		err = fmt.Errorf("%w: %q names a batch, but the stage in %q is missing or incomplete (evicted, or changed by another "+
			"client). "+
			"Restore the stage, or accept the loss of the missing part: DEL %s",
			staging.ErrBrokenStage, s.MetaKey(), s.StageKey(), s.MetaKey())
	}
	return verdict, st, err
}

// gather moves the counts of all staged ids to the stage. A count that one script has moved need not be moved again, so a later run
// continues where this one stopped.
func (s *PlainCounters) gather(ctx context.Context, st flush.Stage) error {
	c, err := s.Store.Conn(ctx, s.Live)
	if err != nil {
		return err
	}
	defer c.Close() // returns it to the pool
	scan, err := s.scanIndex(ctx, c, st)
	if err != nil || scan.command == "" {
		return err
	}
	pace := redisconn.NewPace(gatherChunk, 1<<20).From(gatherChunk / 4)
	for first := true; first || scan.cursor != "0"; first = false {
		ids, err := scan.some(ctx, c)
		if err != nil {
			return s.Fail("read the staged index of", err)
		}
		for len(ids) > 0 {
			some := ids[:min(len(ids), pace.Depth())]
			ids = ids[len(some):]
			began := time.Now()
			if err := s.move(ctx, c, st, some); err != nil {
				return err
			}
			pace.Learn(redisconn.Paced{Took: time.Since(began)})
		}
	}
	return nil
}

// scanIndex prepares a pass over the staged index. If the index is empty, the command of the idScan is "".
func (s *PlainCounters) scanIndex(ctx context.Context, c redisconn.Conn, st flush.Stage) (idScan, error) {
	const doing = "look up the staged index of"
	kind, err := redis.String(redis.DoContext(c, ctx, "TYPE", s.IndexKey()))
	if err != nil {
		return idScan{}, s.Fail(doing, err)
	}
	scan := idScan{key: s.IndexKey(), stride: 1, cursor: "0", pace: redisconn.NewNamePace()}
	switch kind {
	case "none":
	case "set":
		scan.command = "SSCAN"
	case "zset":
		scan.command, scan.stride = "ZSCAN", 2
	default:
		return scan, s.Stale(st) // the index was a set or a zset when it was staged
	}
	return scan, nil
}

// some returns the ids that one call of SSCAN or ZSCAN returns. After the last call the cursor is "0".
func (s *idScan) some(ctx context.Context, c redisconn.Conn) (ids []string, err error) {
	element := 0
	one := func() bool { return true }
	s.cursor, err = c.ScanKey(ctx, s.command, s.key, s.cursor, s.pace, one, func(member []byte) {
		if element%s.stride == 0 {
			ids = append(ids, string(member))
		}
		element++
	})
	return ids, err
}

// move runs the script that moves the counts of some ids to the stage.
func (s *PlainCounters) move(ctx context.Context, c redisconn.Conn, st flush.Stage, ids []string) error {
	args := make([]any, 0, 2*len(ids)+5)
	args = append(args, 3+len(ids), s.IndexKey(), s.StageKey(), s.MetaKey())
	for _, id := range ids {
		args = append(args, s.row.Key(id))
	}
	args = append(args, st.ID)
	for _, id := range ids {
		args = append(args, id)
	}
	ours, err := redis.Bool(countersGatherScript.DoContext(ctx, c, args...))
	if err != nil {
		return s.Fail("move counts to the stage of", err)
	}
	if !ours {
		return s.Stale(st)
	}
	return nil
}

// seal ends the gathering, so that the stage can be read under newID. If nothing was gathered, seal removes the stage, and the result ok
// is false.
func (s *PlainCounters) seal(ctx context.Context, st *flush.Stage, newID string) (ok bool, err error) {
	reply, err := redis.Values(s.Script(ctx, "seal the stage of", countersSealScript,
		s.IndexKey(), s.StageKey(), s.MetaKey(), st.ID, s.partRows, s.Large, newID))
	if err != nil {
		return false, err
	}
	var verdict string
	if reply, err = redis.Scan(reply, &verdict); err != nil {
		return false, err
	}
	switch verdict {
	case "sealed":
		_, err = redis.Scan(reply, &st.ID, &st.Parts, &st.Size)
		return err == nil, err
	case "empty":
		return false, nil
	case "more":
		return false, fmt.Errorf("seal the stage of %q: ids are left in it that the scan did not return; is there a proxy between "+
			"baton and Redis?", s.Live)
	default:
		return false, s.Stale(*st)
	}
}

// Backlog counts the pending changes, including staged ones.
func (s *PlainCounters) Backlog(ctx context.Context) (int64, error) {
	return s.Count(ctx, s.wrongPlainType, countersBacklogScript, s.Live, s.IndexKey(), s.StageKey())
}

// wrongPlainType returns the error for a script's reply {"wrong_type", key, type}. The argument reply contains the key and the type. Only
// the stage and its meta, the hash that describes the stage, must be hashes.
func (s *PlainCounters) wrongPlainType(reply []any) error {
	if len(reply) > 0 {
		if name, err := redis.String(reply[0], nil); err == nil && (name == s.StageKey() || name == s.MetaKey()) {
			k := s.Key
			k.Types = [2]string{"hash"}
			return k.WrongType(reply)
		}
	}
	return s.WrongType(reply)
}

var plainSpec = Spec{
	Kind: spec.Named("plain"),
	idle: staging.BesideIndex,
	inputs: func(o Options) (row.Inputs, error) {
		return captured(o, row.Inputs{Names: []string{row.InputValue}, Guarantee: row.ByLedger})
	},
	commands: func(_ Options, holds string) []string {
		all := append(slices.Clone(stagingCommands), "EXISTS I", "RENAME K I", "MGET R", "DEL R", "HLEN S", "HSCAN S 0", "EVAL s 4 I S M R",
			"PERSIST M")
		switch holds {
		case "zset":
			return append(all, "ZCARD K", "ZSCAN I 0", "ZSCORE I m", "ZREM I m")
		case "set":
			return append(all, "SCARD K", "SSCAN I 0", "SISMEMBER I m", "SREM I m")
		}
		return all
	},
	inCluster: func(o Options) error {
		row, err := spec.ParseRowKey(o.Key)
		if err != nil {
			return err
		}
		return checkOneSlot(row, o.Changed)
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewPlainCounters(s, PlainCountersOptions{
			Job: o.Job, Key: key, Changed: o.Changed, Inputs: inputs, PartRows: o.Rows, Lanes: o.Lanes,
		})
	},
}
