"""Makes an OCI image layout, as a tar file, of a directory: one layer, no registry. `oci.py ROOT TAR VERSION ARCH`."""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile

OWN = 65532
WRITABLE = ("var/lib/banyan", "run", "tmp")


def layer(root):
    """The layer as plain tar: the same bytes for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            info = tar.gettarinfo(path, name)
            owner = OWN if name in WRITABLE else 0
            info.uid = info.gid = owner
            info.uname = info.gname = ""
            info.mtime = 0
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    return out.getvalue()


def main():
    root, target, version, arch = sys.argv[1:]
    plain = layer(pathlib.Path(root))
    packed = gzip.compress(plain, 9, mtime=0)
    blobs = {}

    def blob(content, kind):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    config = {
        "architecture": arch,
        "os": "linux",
        "config": {
            "User": f"{OWN}:{OWN}",
            "Env": ["HOME=/var/lib/banyan", "PATH=/usr/bin", "XDG_CONFIG_HOME=/etc", "XDG_RUNTIME_DIR=/run", "XDG_STATE_HOME=/var/lib"],
            "Entrypoint": ["/usr/bin/banyan"],
            "Cmd": ["up", "--config", "/etc/banyan/banyan.toml"],
            "ExposedPorts": {"7411/tcp": {}},
            "Volumes": {"/var/lib/banyan": {}},
            "WorkingDir": "/var/lib/banyan",
            "Labels": {"org.opencontainers.image.title": "banyan", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created_by": "scripts/package"}],
    }
    described = blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json")
    packed = blob(packed, "application/vnd.oci.image.layer.v1.tar+gzip")
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": described, "layers": [packed]}
    entry = blob(json.dumps(manifest).encode(), manifest["mediaType"])
    entry |= {"annotations": {"org.opencontainers.image.ref.name": version}, "platform": {"architecture": arch, "os": "linux"}}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}
    files = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files |= {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


main()
