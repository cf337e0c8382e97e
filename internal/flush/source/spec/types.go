package spec

import "slices"

// These are the types of a source, by their names in a configuration.
const (
	Counters = "counters" // a hash that maps each field to an increment that is not flushed yet, or a key for each counter
	Hashes   = "hashes"   // a hash for each row, and an index of the changed ids
	Zset     = "zset"     // one sorted set, and an index of the changed members
	List     = "list"     // JSON objects that producers push to the tail
	Stream   = "stream"   // entries, read by their position
	Scan     = "scan"     // every key that matches a pattern, in repeated passes
	Capture  = "capture"  // the changed keys that match a pattern, by the replication stream
)

// Kinds returns all kinds of sources. source.Sources returns their complete descriptions.
func Kinds() []Kind { return slices.Clone(kinds) }

// These texts say why a kind of source lacks an option that another kind of the same type has.
const (
	watermarkOnly = "only with mode: watermark; remove it"
	hashHasFields = "only for counters with a key each, such as hits:<id>; the fields of a hash need no index: remove it"
)

// These are examples of the setting `columns`.
const (
	countersColumns = "{id: $field, views: $value}"
	keyedColumns    = "{id: id, views: $value}"
)

var kinds = []Kind{
	{
		Name: "counters", Type: Counters, Key: KeyShards, Delivers: Increments,
		Columns: countersColumns,
		Options: map[string]string{".from.mode": "stage"},
		Lacks:   map[string]string{".from.changed": hashHasFields, ".from.on_decrease": watermarkOnly},
	},
	{
		Name: "plain", Type: Counters, Key: KeyOfRow, Indexed: true, Delivers: Increments,
		Columns: keyedColumns,
		Options: map[string]string{".from.changed": "", ".from.mode": "stage"},
		Lacks:   map[string]string{".from.on_decrease": watermarkOnly},
	},
	{
		Name: "watermark", Type: Counters, Watermark: true, Key: KeyShards, Delivers: Increments, Keeps: true, Looks: true,
		Columns: countersColumns,
		Options: map[string]string{".from.mode": "", ".from.on_decrease": "stop"},
		Lacks:   map[string]string{".from.changed": hashHasFields},
	},
	{
		Name: "watermark keys", Type: Counters, Watermark: true, Key: KeyOfRow, Delivers: Increments, Keeps: true, Looks: true,
		Columns: keyedColumns,
		Options: map[string]string{".from.mode": "", ".from.on_decrease": "stop"},
		Lacks:   map[string]string{".from.changed": "with mode watermark every run reads every key; remove it"},
	},
	{
		Name: "hashes", Type: Hashes, Key: KeyOfRow, Indexed: true, Delivers: States,
		Options: map[string]string{
			".from.changed": "", ".from.on_missing": "delete", ".from.max_pct": "", ".to.adopt": "ask", ".to.keep_deleted": "",
			".verify": "",
		},
	},
	{
		Name: "zset", Type: Zset, Key: KeyOfAll, Indexed: true, Delivers: States,
		Columns: "{member: $member, score: $score}",
		Options: map[string]string{
			".from.changed": "", ".from.on_missing": "delete", ".from.max_pct": "", ".to.adopt": "ask", ".to.keep_deleted": "",
			".verify": "",
		},
	},
	{
		Name: "list", Type: List, Key: KeyShards, Delivers: Events,
		Options: map[string]string{".to.delete_when": ""},
	},
	{
		Name: "stream", Type: Stream, Key: KeyShards, Delivers: Events, Keeps: true,
		Options: map[string]string{".from.on_gap": "stop", ".from.start": "beginning", ".from.retain": "", ".to.delete_when": ""},
	},
	{
		Name: "scan", Type: Scan, Key: KeyMatched, Delivers: States, Keeps: true, Looks: true,
		Options: map[string]string{
			".from.value": "hash", ".from.vanished": "ignore", ".from.max_pct": "", ".to.generation": "",
			".to.adopt": "ask", ".to.keep_deleted": "",
			".verify": "",
		},
	},
	{
		Name: "capture", Type: Capture, Key: KeyMatched, Delivers: States, Keeps: true,
		Options: map[string]string{
			".from.value": "hash", ".from.on_missing": "delete", ".from.on_flush": "stop", ".from.max_pct": "",
			".to.adopt": "ask", ".to.keep_deleted": "",
			".verify": "",
		},
	},
}

// Types returns the types of sources, in the order of the list that Kinds returns.
func Types() []string { return typesOf(func(Kind) bool { return true }) }

// TypesTaking returns the types with at least one kind that has the given setting.
func TypesTaking(setting string) []string {
	return typesOf(func(k Kind) bool { return k.Takes(setting) })
}

func typesOf(some func(Kind) bool) []string {
	var types []string
	for _, k := range kinds {
		if some(k) && !slices.Contains(types, k.Type) {
			types = append(types, k.Type)
		}
	}
	return types
}
