package finding

// Kind describes a kind of finding: its severity, and the contents of its row in docs/doctor.md. A check that makes a finding of this kind
// adds the values that it has found, and a remedy.
type Kind struct {
	Severity Severity
	When     string // the condition, which follows the severity on the page, such as a limit
	Words    string // the text of the finding, with … for values; several texts of one row are separated by commas or semicolons
	Lost     string // the loss that may follow, in short
}

// As returns a copy of the kind with another severity.
func (k Kind) As(s Severity) Kind {
	k.Severity = s
	return k
}

// Of returns a finding of this kind about a subject, such as a server or a job.
func (k Kind) Of(subject, what, consequence, remedy string) Finding {
	return Finding{Severity: k.Severity, Subject: subject, What: what, Consequence: consequence, Remedy: remedy}
}

// Table lists the kinds of findings about one subject, in the order of the table in docs/doctor.md.
type Table struct {
	Name  string // the name of the table in the page
	Kinds []Kind
}

func (t *Table) kind(s Severity, when, words, lost string) Kind {
	k := Kind{s, when, words, lost}
	t.Kinds = append(t.Kinds, k)
	return k
}

// Tables returns all kinds of findings.
func Tables() []*Table {
	return []*Table{
		configuration,
		nodes,
		host,
		unit,
		files,
		jobs,
		servers,
		redis,
		databases,
		postgres,
		mysql,
		sqlite,
	}
}
