package hosts

import (
	"fmt"
	"os"
	"testing"
)

// The environment by which the Makefile and the processes of this package speak.
const (
	envLab   = "BATON_LAB"         // where base/ is; set: run the tests
	envStage = "BATON_HOSTS_STAGE" // which of the processes this one is
	envSpec  = "BATON_HOSTS_SPEC"  // what the stage works on, as JSON
)

const (
	stageTests = "tests"
	stageInit  = "init"
)

// Main runs a package's tests in namespaces of their own. Call it from TestMain, with
// nothing before it: hosts begin as this program, too. Without $BATON_LAB it says how
// to run the tests, and runs none. What is to follow the last test comes in after.
func Main(m *testing.M, after ...func()) {
	switch os.Getenv(envStage) {
	case stageInit:
		fmt.Fprintln(os.Stderr, "become a host:", becomeHost()) // returns only if it failed
		os.Exit(1)
	case stageTests:
		g, err := enterGround()
		if err != nil {
			fmt.Fprintln(os.Stderr, "prepare the namespaces of the tests:", err)
			os.Exit(1)
		}
		ground = g
		code := m.Run()
		for _, f := range after {
			f()
		}
		os.Exit(code)
	}
	lab := os.Getenv(envLab)
	if lab == "" {
		fmt.Println("hosts with a real systemd: `make test-systemd` runs these tests")
		os.Exit(0)
	}
	code, err := supervise(lab)
	if err != nil {
		fmt.Fprintln(os.Stderr, "boot hosts for tests:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// ground is what all labs of the process stand on. It is a variable of the package
// because a test binary has one process and many entry points.
var ground *base
