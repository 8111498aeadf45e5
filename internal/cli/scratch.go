package cli

import (
	"fmt"
	"os"
)

// scratch makes a temporary folder that done removes.
func scratch(name string) (dir string, done func(), err error) {
	dir, err = os.MkdirTemp("", name)
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}
