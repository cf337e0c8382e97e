package daemon

import (
	"context"

	"baton/internal/demo"
)

// What the command demo needs: commands reach every package through this one.
type (
	// DemoOptions say what a demo runs on, and for how long.
	DemoOptions = demo.Options
	// DemoScreen is a terminal that a demo is shown on.
	DemoScreen = demo.Screen
	// DemoReport is what a demo came to.
	DemoReport = demo.Report
)

// DemoRate is the changes a second of a demo's traffic, by default.
const DemoRate = demo.DefaultRate

// Demo runs three nodes under traffic, then audits the database.
func Demo(ctx context.Context, o DemoOptions) (DemoReport, error) { return demo.Run(ctx, o) }
