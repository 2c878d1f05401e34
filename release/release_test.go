// Package release_test builds a release and installs it.
package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/internal/must"
)

func TestAReleaseIsBuiltTwiceTheSameAndItsPackageWorks(t *testing.T) {
	if os.Getenv("TOOLD_RELEASE") == "" {
		t.Skip("a release is built only with TOOLD_RELEASE=1, as .ci/nightly has it")
	}
	build := must.Get(filepath.Abs("build"))(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(os.Environ(), e.Vars...)
			e.Setenv("HOME", os.Getenv("HOME")) // of git and Go
			e.Setenv("BUILD", build)
			e.Setenv("ARCH", runtime.GOARCH)
			return nil
		},
		Condition: func(name string) (bool, error) {
			// What the script install makes.
			return exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-ec", `
				mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work && mount -t proc proc /proc
				mount -t overlay -o lowerdir=/usr,upperdir=/mnt/upper,workdir=/mnt/work,userxattr none /usr`).Run() == nil, nil
		},
	})
}
