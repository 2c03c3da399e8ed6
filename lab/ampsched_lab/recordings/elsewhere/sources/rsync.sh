rm -rf copied
mkdir copied
rsync -e ./remote.sh -z --compress-level=6 part*.txt here:copied/
