package doctor

import (
	"slices"
	"strings"

	"baton/internal/config"
	"baton/internal/finding"
)

// Options selects checks in addition to the checks of the servers.
type Options struct {
	// ConfigFile is the path of the configuration file, or "" if there is no file.
	ConfigFile string
	// Unit is the name of the systemd unit of baton on this host. This unit is checked too, unless Unit is "". [UnitOf] returns the unit
	// that baton's packages install. A daemon that checks itself sets no Unit, because it may not be allowed to query systemd.
	Unit string
	// Self is set by a node that checks itself. Such a node passes only the part of its configuration that belongs to one lock. So checks
	// that need the whole configuration are left out, as is the comparison of this part with the jobs that the node runs.
	Self bool
	// Getenv reads the environment. nil means an empty environment.
	Getenv func(name string) (string, bool)
	// Seen, if set, is called when a check begins, and again when the check is over.
	Seen func(subject string, over bool)
}

func (o Options) env(name string) string {
	if o.Getenv == nil {
		return ""
	}
	value, _ := o.Getenv(name)
	return value
}

// Report holds findings, and the numbers of errors and warnings among them.
type Report struct {
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// ReportOf returns a Report with these findings.
func ReportOf(all []Finding) Report {
	r := Report{Findings: all}
	for _, f := range all {
		switch f.Severity {
		case SeverityError:
			r.Errors++
		case SeverityWarning:
			r.Warnings++
		}
	}
	return r
}

// report collects the findings about one subject after the other.
type report struct {
	subject  string
	findings []Finding
}

func (r *report) add(kind finding.Kind, what, consequence, remedy string) {
	r.findings = append(r.findings, kind.Of(r.subject, what, consequence, remedy))
}

// grave reports whether at least one finding is a warning or an error.
func (r *report) grave() bool {
	return slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Severity.Rank() < SeverityInfo.Rank() })
}

const (
	subjectConfig = "configuration"
	subjectHost   = "host"
)

func unitSubject(name string) string { return "unit " + name }

// byPlace sorts the findings by their subjects. Findings about jobs are in the order of the configuration.
func byPlace(all []Finding, c config.Config) []Finding {
	first := []string{subjectConfig, "redis", "store ", "node ", "database", subjectHost, "unit ", "file ", "notification"}
	place := func(f Finding) int {
		if i := slices.IndexFunc(first, func(prefix string) bool { return strings.HasPrefix(f.Subject, prefix) }); i >= 0 {
			return i - len(first)
		}
		return slices.IndexFunc(c.Jobs, func(j config.Job) bool { return strings.HasPrefix(f.Subject, jobSubject(j.Name)) })
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return place(a) - place(b) })
	return all
}
