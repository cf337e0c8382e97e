package hosts

import (
	"fmt"
	"os"
	"testing"
)

// These environment variables pass settings from the Makefile to the tests, and between the processes of this package.
const (
	envLab   = "BATON_LAB"         // the directory of base/; the tests run only if it is set
	envStage = "BATON_HOSTS_STAGE" // the stage that this process runs
	envSpec  = "BATON_HOSTS_SPEC"  // the input of the stage, as JSON
)

const (
	stageTests = "tests"
	stageInit  = "init"
)

// Main runs a package's tests in their own namespaces. Call Main as the first statement of TestMain, because a host also starts as this
// program. Without $BATON_LAB Main prints how to run the tests, and runs no test. The functions in the argument after run when the last
// test has ended.
func Main(m *testing.M, after ...func()) {
	switch os.Getenv(envStage) {
	case stageInit:
		fmt.Fprintln(os.Stderr, "become a host:", becomeHost()) // becomeHost returns only if it fails
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

// ground contains the paths that all labs of the process use. It is a package variable, because a test binary has many test functions and
// no other place for a shared value.
var ground *base
