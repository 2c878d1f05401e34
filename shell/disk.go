package shell

import (
	"path"
	"slices"
	"strings"
)

// disk is what a script may have changed on the disk so far, in any of its processes:
// the analysis looks at the disk before the script runs. It only grows.
type disk struct {
	made  []string            // symbolic links that the script makes
	moved []string            // where it may have put links that were elsewhere
	files map[string]struct{} // paths that it writes
	trees map[string]struct{} // directories of which it may write anything
	repos map[string]struct{} // directories that it may make a repository of, or change as one
	count int
}

// changes is a number that grows with each change.
func (d *disk) changes() int { return d.count + len(d.made) + len(d.moved) }

// write records that a path is written, or a tree.
func (d *disk) write(name string, tree bool) {
	if d.files == nil {
		d.files, d.trees, d.repos = map[string]struct{}{}, map[string]struct{}{}, map[string]struct{}{}
	}
	if tree {
		d.put(d.trees, name)
	}
	d.put(d.files, name)
	if i := strings.Index(name+"/", "/.git/"); i >= 0 && !strings.HasSuffix(name, ".lock") {
		d.put(d.repos, name[:i])
	}
	if base := path.Base(name); base == "HEAD" || base == "objects" {
		d.put(d.repos, path.Dir(name))
	}
}

func (d *disk) put(set map[string]struct{}, name string) {
	if _, have := set[name]; !have {
		set[name] = struct{}{}
		d.count++
	}
}

// wrote reports whether a path may have been written.
func (d *disk) wrote(name string) bool {
	if _, file := d.files[name]; file {
		return true
	}
	for len(d.trees) > 0 {
		if _, tree := d.trees[name]; tree {
			return true
		}
		if name == "/" || name == "." {
			break
		}
		name = path.Dir(name)
	}
	return false
}

// mayBeRepository reports whether a directory may have become a repository, or another
// one.
func (d *disk) mayBeRepository(dir string) bool {
	if _, repo := d.repos[dir]; repo || slices.Contains(d.made, dir) || slices.Contains(d.moved, dir) {
		return true
	}
	return len(d.trees) > 0 && d.wrote(dir+"/.git")
}

// join adds the changes of another state. States of one script share theirs.
func (d *disk) join(o *disk) (changed bool) {
	if d == o {
		return false
	}
	before := d.changes()
	for name := range o.files {
		_, tree := o.trees[name]
		d.write(name, tree)
	}
	joinList(&d.made, o.made)
	joinList(&d.moved, o.moved)
	return d.changes() != before
}
