package row

// The names of inputs other than fields and captures.
const (
	InputField      = "$field"      // counters: the hash field that was counted
	InputValue      = "$value"      // counters: the sum added since the last flush; list and scan: the whole value
	InputID         = "$id"         // stream: the entry's id
	InputKey        = "$key"        // scan: the key
	InputMember     = "$member"     // zset and scan: the member of a set
	InputScore      = "$score"      // zset and scan: the score of the member
	InputGeneration = "$generation" // scan: the number of the pass
)

// Listed is the last text of a row that flush.KeyLister returns, if the row has a value outside of its key.
const Listed = "1"

// Inputs are the inputs that a source can deliver.
type Inputs struct {
	// Names are the inputs that the source itself defines: $field and $value of counters, and captures such as id of "user:<id>".
	Names []string
	// Fields means that every other name is a field of the record's hash.
	Fields bool
	// Lacks explains why the source does not deliver an input that a user may expect, with the remedy.
	Lacks map[string]string
	// Guarantee is the reason why each record is written exactly once.
	Guarantee Guarantee
	// Spelled means that baton searches for a row's record by the texts of the row's key. Therefore a record does not fit if it spells its
	// key in another way than its row would ("007", a UUID in capitals).
	Spelled bool
}

// Guarantee is the reason why a source's records are written exactly once, although a page may be read and written again after any failure.
type Guarantee int

const (
	// ByState means that a record has the present state of its row, and that writing it again changes nothing. A job with this guarantee
	// must not add increments to columns, and must not insert rows without a key.
	ByState Guarantee = iota
	// ByPass means the same as ByState, and that every pass delivers every record again. A record that does not fit becomes a dead letter
	// only once, and not in each pass.
	ByPass
	// ByChanges means the same as ByState, and that every page moves the source's position, which is in the database.
	ByChanges
	// ByLedger means that the pages of a stage are numbered parts, and that every reading gives the same parts. The ledger in the database
	// has the numbers of the written parts.
	ByLedger
	// ByPosition means that every page moves the source's position, which is in the database.
	ByPosition
	// ByMark means that $value is a total that only the producers write. The mark is the part of this total that the database has already
	// added. Baton writes the difference between the total and the mark.
	ByMark
)

// Placed reports whether the database stores the source's position. If it does, every page moves that position.
func (g Guarantee) Placed() bool { return g == ByPosition || g == ByChanges }

// Once reports whether each record is written only once. Then a job may add the record's value to a column, or insert the record as a row
// without a key.
func (g Guarantee) Once() bool { return g >= ByLedger }
