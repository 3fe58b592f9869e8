module github.com/changeover-dev/changeover/upgrade

go 1.26.0

replace github.com/changeover-dev/changeover => ../
