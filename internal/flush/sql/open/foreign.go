package open

import (
	"fmt"
	"regexp"
	"strings"
)

// foreignForms are the forms of DSNs that other programs accept and baton does not accept.
var foreignForms = []struct {
	form *regexp.Regexp
	what string
}{
	{regexp.MustCompile(`(?i)^jdbc:[a-z0-9]+:`), "a URL of JDBC"},
	{regexp.MustCompile(`(?i)^[a-z0-9]+\+[a-z0-9_]+://`), "a URL of SQLAlchemy"},
	{regexp.MustCompile(`(?i)^(pgsql|mysql|sqlite):[a-z_]+=`), "a DSN of PHP"},
	{regexp.MustCompile(`(?i)^(server|host|addr|address|network address|data ?source|provider|dsn|port|database|` +
		`initial catalog|user ?id|uid|user ?name)\s*=[^;'\s]*;`), "a connection string of .NET or ODBC"},
	{regexp.MustCompile(`(?i)^driver\s*=\s*\{`), "a connection string of ODBC"},
	{regexp.MustCompile(`(?i)^(export +)?[a-z_]+ *= *["']?[a-z0-9+]+://`), "a line of a file of variables"},
}

// schemes maps the scheme of a URL to the name of a driver.
var schemes = map[string]string{"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql", "mariadb": "mysql"}

// foreign returns an error if a DSN has a form that another program accepts. The driver might accept such a DSN and connect to another
// server. The error quotes no part of the DSN.
func foreign(driver, form, dsn string) error {
	dsn = strings.TrimSpace(dsn)
	for _, f := range foreignForms {
		if f.form.MatchString(dsn) {
			return fmt.Errorf("the DSN cannot be read: it is %s: use %s", f.what, form)
		}
	}
	scheme, _, ok := strings.Cut(dsn, "://")
	switch of := schemes[strings.ToLower(scheme)]; {
	case !ok || of == "" || driver == "postgres" && of == driver:
		return nil
	case of == "postgres" || driver == "postgres" || driver == "sqlite":
		return fmt.Errorf("the DSN cannot be read: it is for another driver: set driver: %s, or use %s", of, form)
	}
	return fmt.Errorf("the DSN cannot be read: it is a URL: use %s", form)
}
