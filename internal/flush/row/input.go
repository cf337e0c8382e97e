package row

// Names of the inputs that sources deliver beside fields and captures.
const (
	InputField      = "$field"      // counters: the hash field that was counted
	InputValue      = "$value"      // counters: what was added since the last flush; list and scan: the whole value
	InputID         = "$id"         // stream: the entry's id
	InputKey        = "$key"        // scan: the key
	InputMember     = "$member"     // zset and scan: the member of a set
	InputScore      = "$score"      // zset and scan: and its score
	InputGeneration = "$generation" // scan: the number of the pass
)

// Inputs says what a source can deliver to a mapping.
type Inputs struct {
	// Names are the inputs that the source itself knows: $field and $value of
	// counters, and captures such as id of "user:<id>".
	Names []string
	// Fields: every other name is a field of the row's hash.
	Fields bool
	// Lacks says why it does not deliver an input that one may look for, and what to do.
	Lacks map[string]string
	// Guarantee is what makes the write of a record exactly once.
	Guarantee Guarantee
}

// Guarantee says what makes the write of a record exactly once, though a page may be
// read and written again after any failure. A source has one.
type Guarantee int

const (
	// ByState is that a record says what its row is now, and to write it again changes
	// nothing. Nothing may be added, nor inserted without a key.
	ByState Guarantee = iota
	// ByPass is ByState, and every pass delivers every record again. One that does not
	// fit is put aside once, not with each pass.
	ByPass
	// ByLedger is that the pages of a stage are numbered parts, the same at every
	// reading, and the ledger in the database knows those that are written.
	ByLedger
	// ByPosition is that every page moves the source's place, which is kept in the database.
	ByPosition
	// ByMark is that $value is a total that only the producers write. What is written is
	// the difference to the total that the database has a mark of.
	ByMark
)

// Once reports whether each record is written once, so that it may be added, or inserted
// without a key.
func (g Guarantee) Once() bool { return g >= ByLedger }
