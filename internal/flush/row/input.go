package row

// The names of inputs other than fields and captures.
const (
	InputField      = "$field"      // counters: the hash field that was counted
	InputValue      = "$value"      // counters: the sum added since the last flush; list and scan: the whole value
	InputID         = "$id"         // stream: the entry's id
	InputKey        = "$key"        // scan: the key
	InputMember     = "$member"     // zset and scan: the member of a set
	InputScore      = "$score"      // zset and scan: and its score
	InputGeneration = "$generation" // scan: the number of the pass
)

// Listed is the text of a listed row that has more than its key.
const Listed = "1"

// Inputs are the inputs that a source can deliver.
type Inputs struct {
	// Names are the inputs that the source itself knows: $field and $value of
	// counters, and captures such as id of "user:<id>".
	Names []string
	// Fields: every other name is a field of the row's hash.
	Fields bool
	// Lacks explains, with the remedy, why the source does not deliver an expected input.
	Lacks map[string]string
	// Guarantee is what makes the write of a record exactly once.
	Guarantee Guarantee
	// Spelled: rows are searched for in the source by the texts of their keys, so that a record whose key says
	// the same in another way ("007", a UUID in capitals) does not fit.
	Spelled bool
}

// Guarantee is how a source's records are written exactly once, though a page may be read and
// written again after any failure.
type Guarantee int

const (
	// ByState means that a record has the present state of its row, and writing it again changes
	// nothing. Columns must not be added to, nor rows inserted without a key.
	ByState Guarantee = iota
	// ByPass is ByState, and every pass delivers every record again. One that does not
	// fit is put aside once, not with each pass.
	ByPass
	// ByChanges is ByState, and every page moves the source's place, which is kept in the database.
	ByChanges
	// ByLedger is that the pages of a stage are numbered parts, the same at every
	// reading, and the ledger in the database knows those that are written.
	ByLedger
	// ByPosition is that every page moves the source's place, which is kept in the database.
	ByPosition
	// ByMark means that $value is a total that only the producers write. The difference to its mark in
	// the database is written.
	ByMark
)

// Placed reports whether the source's place is kept in the database, and every page moves it.
func (g Guarantee) Placed() bool { return g == ByPosition || g == ByChanges }

// Once reports whether each record is written once, so that it may be added, or inserted
// without a key.
func (g Guarantee) Once() bool { return g >= ByLedger }
